/* What a kernel launch costs the host in a replayed graph: a chain of tiny kernels, each reading what the one
 * before wrote, both addresses of every node changed at each replay. The clock runs over the whole replay
 * call: instance, checks, scatter, ring, doorbell. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>

#include <bellwire/mock.h>

#include "bench/bench.h"
#include "tools/print.h"

enum {
    NODES_DEFAULT = 200,
    REPEATS_DEFAULT = 2000,
    WARM_UP = 10,
    SETS = 2, /* of buffers, taken in turn */
};

struct chain {
    struct bw_device *device;
    struct bw_bench_kernel kernel;
    struct bw_linked_graph *linked;
    struct bw_buffer **buffers[SETS]; /* node_count + 1 each */
    uint32_t node_count;
};

struct result {
    double host_ns_per_node, done_ns_per_node;
    double syscalls_per_replay, allocations_per_replay;
    struct bw_graph_stats stats;
};

static int node_add(struct bw_graph *graph, const struct bw_bench_kernel *kernel, uint32_t node,
                    struct bw_err *err)
{
    struct bw_argument arguments[] = {
        {.source = BW_ARG_RANGE, .access = BW_ACCESS_READ, .range = {NULL, node, 0, sizeof(uint32_t)}},
        {.source = BW_ARG_RANGE, .access = BW_ACCESS_WRITE, .range = {NULL, node + 1, 0, sizeof(uint32_t)}},
    };
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {kernel->group_size, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2};
    return bw_graph_kernel(graph, kernel->kernel, &launch, err);
}

static int chain_link(struct chain *chain, struct bw_err *err)
{
    struct bw_graph *graph;
    int rc = bw_graph_create(bw_device_ctx(chain->device), &graph, err);
    if (rc)
        return rc;
    for (uint32_t node = 0; node < chain->node_count && !rc; node++)
        rc = node_add(graph, &chain->kernel, node, err);
    if (!rc)
        rc = bw_graph_link(graph, NULL, &chain->linked, err);
    bw_graph_destroy(graph);
    return rc;
}

static int chain_buffers(struct chain *chain, struct bw_err *err)
{
    int rc = 0;
    for (int set = 0; set < SETS && !rc; set++) {
        chain->buffers[set] = calloc(chain->node_count + 1, sizeof *chain->buffers[set]);
        if (!chain->buffers[set])
            return bw_fail(err, -ENOMEM, "bench", "%u buffers", chain->node_count + 1);
        for (uint32_t i = 0; i <= chain->node_count && !rc; i++)
            rc = bw_buffer_create(chain->device, sizeof(uint32_t), BW_BUFFER_DEVICE, &chain->buffers[set][i],
                                  err);
    }
    return rc;
}

static void chain_destroy(struct chain *chain)
{
    bw_linked_graph_destroy(chain->linked);
    for (int set = 0; set < SETS; set++) {
        for (uint32_t i = 0; chain->buffers[set] && i <= chain->node_count; i++)
            bw_buffer_destroy(chain->buffers[set][i]);
        free(chain->buffers[set]);
    }
    bw_program_destroy(chain->kernel.program);
    bw_device_close(chain->device);
}

static int chain_create(struct bw_ctx *ctx, const char *name, uint32_t node_count, struct chain *chain,
                        struct bw_err *err)
{
    *chain = (struct chain){.node_count = node_count};
    int rc = bw_device_open(ctx, name, &chain->device, err);
    if (!rc)
        rc = bw_bench_kernel_load(chain->device, &chain->kernel, err);
    if (!rc)
        rc = chain_link(chain, err);
    if (!rc)
        rc = chain_buffers(chain, err);
    if (rc)
        chain_destroy(chain);
    return rc;
}

static int compare_u64(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static double median(uint64_t *values, uint32_t count)
{
    qsort(values, count, sizeof *values, compare_u64);
    return (double)values[count / 2];
}

/* Two times per replay: until the call returns, which is the host's, and until the device is done. */
static int chain_measure(struct chain *chain, uint32_t repeats, struct result *result, struct bw_err *err)
{
    struct bw_sys *sys = bw_ctx_sys(bw_device_ctx(chain->device)), *mock = bw_device_mock(chain->device);
    struct bw_sys *asked = mock ? mock : sys; /* whose calls count */
    uint64_t *host_ns = calloc(2ull * repeats, sizeof *host_ns), *done_ns = host_ns + repeats;
    uint64_t calls = 0, allocations = 0;
    if (!host_ns)
        return bw_fail(err, -ENOMEM, "bench", "%u times", repeats);
    int rc = 0;
    for (uint32_t i = 0; i < repeats + WARM_UP && !rc; i++) {
        struct bw_replay replay = {.inputs = chain->buffers[i % SETS], .input_count = chain->node_count + 1};
        uint64_t ticket = 0, calls_before = __atomic_load_n(&asked->calls, __ATOMIC_RELAXED);
        uint64_t allocations_before = bw_bench_allocations(), begin_ns = sys->ops->clock_ns(sys);
        rc = bw_linked_graph_replay(chain->linked, &replay, &ticket, err);
        uint64_t end_ns = sys->ops->clock_ns(sys);
        if (i >= WARM_UP) {
            host_ns[i - WARM_UP] = end_ns - begin_ns;
            calls += __atomic_load_n(&asked->calls, __ATOMIC_RELAXED) - calls_before;
            allocations += bw_bench_allocations() - allocations_before;
        }
        if (!rc)
            rc = bw_linked_graph_wait(chain->linked, ticket, err);
        if (i >= WARM_UP)
            done_ns[i - WARM_UP] = sys->ops->clock_ns(sys) - begin_ns;
    }
    result->host_ns_per_node = median(host_ns, repeats) / chain->node_count;
    result->done_ns_per_node = median(done_ns, repeats) / chain->node_count;
    result->syscalls_per_replay = (double)calls / repeats;
    result->allocations_per_replay = (double)allocations / repeats;
    bw_linked_graph_stats(chain->linked, &result->stats);
    free(host_ns);
    return rc;
}

static void result_report(const struct chain *chain, const struct result *result, FILE *text, cJSON *rows)
{
    const char *name = bw_device_info(chain->device)->name;
    const struct bw_graph_stats *stats = &result->stats;
    double nodes = chain->node_count;
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "device", name);
    cJSON_AddNumberToObject(row, "nodes", nodes);
    cJSON_AddNumberToObject(row, "host_ns_per_node", result->host_ns_per_node);
    cJSON_AddNumberToObject(row, "done_ns_per_node", result->done_ns_per_node);
    cJSON_AddNumberToObject(row, "syscalls_per_replay", result->syscalls_per_replay);
    cJSON_AddNumberToObject(row, "allocations_per_replay", result->allocations_per_replay);
    cJSON_AddNumberToObject(row, "dwords_per_node", stats->dwords / nodes);
    cJSON_AddNumberToObject(row, "waits_per_node", stats->waits / nodes);
    cJSON_AddNumberToObject(row, "cache_ops_per_node", stats->cache_operations / nodes);
    cJSON_AddNumberToObject(row, "doorbells_per_replay", stats->doorbells);
    cJSON_AddItemToArray(rows, row);
    if (text)
        bw_print(text, "%-28s %5u %10.1f %10.1f %9.2f %7.2f %8.1f %6.2f %6.2f %6u\n", name, chain->node_count,
                 result->host_ns_per_node, result->done_ns_per_node, result->syscalls_per_replay,
                 result->allocations_per_replay, stats->dwords / nodes, stats->waits / nodes,
                 stats->cache_operations / nodes, stats->doorbells);
}

int bw_bench_launch(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err)
{
    static const char *const names_default[] = {"null"};
    const char *const *names = options->device_count ? options->devices : names_default;
    uint32_t name_count = options->device_count ? options->device_count : 1;
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "results");
    if (options->text)
        bw_print(options->text, "%-28s %5s %10s %10s %9s %7s %8s %6s %6s %6s\n", "device", "nodes", "ns/node",
                 "done ns", "syscalls", "allocs", "dwords", "waits", "cache", "bells");
    int rc = 0;
    for (uint32_t i = 0; i < name_count && !rc; i++) {
        struct chain chain;
        struct result result;
        rc = chain_create(options->ctx, names[i], options->nodes ? options->nodes : NODES_DEFAULT, &chain,
                          err);
        if (rc)
            break;
        rc = chain_measure(&chain, options->repeats ? options->repeats : REPEATS_DEFAULT, &result, err);
        if (!rc)
            result_report(&chain, &result, options->text, rows);
        chain_destroy(&chain);
    }
    if (rc)
        cJSON_Delete(root);
    else
        *document = root;
    return rc;
}
