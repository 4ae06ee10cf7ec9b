/* How GPUs are connected, with the rates of links and copy engines: what a timing model and a cost model
 * count with. Read from JSON:
 *
 *     {"name": "8xMI300X", "gpus": 8, "engines_per_gpu": 16, "engine_gb_per_s": 32,
 *      "links": [{"from": 0, "to": 1, "gb_per_s": 64, "latency_us": 0.5}, ...],
 *      "sources": {"gpus": "...", ...}}
 *
 * A link carries one direction. "from" and "to" are GPUs, or "host" for the machine's memory and root
 * complexes. Two GPUs without a link of their own reach each other through the host, over two links. "name"
 * and "sources" (texts that say where the numbers are from) are optional; any other key is refused. GB are
 * 1e9 bytes. */
#ifndef BW_TOPOLOGY_H
#define BW_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

#include <bellwire/err.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BW_TOPOLOGY_GPUS_MAX = 64,    /* devices of one context */
    BW_TOPOLOGY_ENGINES_MAX = 64, /* of one GPU: four times what any has */
    BW_TOPOLOGY_HOST = 0xffff,    /* as an end of a link */
    BW_TOPOLOGY_ROUTE_MAX = 2,
};

struct bw_topology_link {
    uint32_t from, to; /* a GPU, or BW_TOPOLOGY_HOST */
    double gb_per_s, latency_us;
};

struct bw_topology {
    char name[64];
    uint32_t gpu_count, engines_per_gpu;
    double engine_gb_per_s;
    struct bw_topology_link *links;
    uint32_t link_count;
};

/* text: JSON of size_bytes, read, not kept; `name` stands in errors, and in the topology when the text gives
 * it none. -EINVAL: not such a document (the error names the key, what was expected and what is there).
 * -E2BIG: longer than 1 MiB. The caller ends it with bw_topology_free. */
int bw_topology_parse(const char *name, const char *text, size_t size_bytes, struct bw_topology *topology,
                      struct bw_err *err);
void bw_topology_free(struct bw_topology *topology);

/* The links from one end to another, by their numbers: how many, 0 from an end to itself, or -ENOENT. */
int bw_topology_route(const struct bw_topology *topology, uint32_t from, uint32_t to,
                      uint32_t route[BW_TOPOLOGY_ROUTE_MAX]);

#ifdef __cplusplus
}
#endif
#endif
