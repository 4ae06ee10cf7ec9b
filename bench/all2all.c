/* All to all: part i of what rank r sends becomes part r of what rank i receives. All copies are one call of
 * one graph, linked once and replayed. */
#include <string.h>

#include "base/map.h"
#include "bench/collective.h"

enum { BLOCK_BYTES = 4096 };

/* ---- what is sent: a function of rank and place, so that it can be told anywhere ---- */

static void bytes_make(uint32_t rank, uint64_t offset, uint64_t size_bytes, char *memory)
{
    while (size_bytes) {
        uint64_t word = bw_hash64((uint64_t)rank << 48 | offset / 8), skip = offset % 8;
        uint64_t take = 8 - skip < size_bytes ? 8 - skip : size_bytes;
        memcpy(memory, (char *)&word + skip, take);
        memory += take;
        offset += take;
        size_bytes -= take;
    }
}

static void all2all_fill(const struct bw_bench_group *group, uint32_t rank, uint64_t size_bytes, char *memory)
{
    bytes_make(rank, 0, size_bytes, memory);
}

static uint64_t block_wrong(const char *observed, const char *expected, uint64_t size_bytes,
                            uint32_t element_bytes)
{
    uint64_t wrong = 0;
    if (memcmp(observed, expected, size_bytes) == 0)
        return 0;
    for (uint64_t at = 0; at < size_bytes; at += element_bytes)
        wrong += memcmp(observed + at, expected + at, element_bytes) != 0;
    return wrong;
}

static uint64_t all2all_wrong(const struct bw_bench_group *group, uint32_t rank, uint64_t size_bytes,
                              const char *memory)
{
    char expected[BLOCK_BYTES];
    uint64_t part_bytes = size_bytes / group->rank_count, wrong = 0;
    for (uint32_t from = 0; from < group->rank_count; from++) {
        for (uint64_t at = 0; at < part_bytes; at += BLOCK_BYTES) {
            uint64_t left_bytes = part_bytes - at,
                     bytes = left_bytes < BLOCK_BYTES ? left_bytes : BLOCK_BYTES;
            bytes_make(from, rank * part_bytes + at, bytes, expected);
            wrong += block_wrong(memory + from * part_bytes + at, expected, bytes, group->element_bytes);
        }
    }
    return wrong;
}

static uint64_t all2all_count(const struct bw_bench_group *group, uint64_t *size_bytes)
{
    uint64_t count = *size_bytes / group->element_bytes / group->rank_count;
    *size_bytes = count * group->element_bytes * group->rank_count;
    return count;
}

static double all2all_bus_factor(uint32_t rank_count)
{
    return (rank_count - 1.0) / rank_count;
}

static uint64_t all2all_traffic(uint32_t rank_count, uint32_t from, uint32_t to, uint64_t size_bytes)
{
    return size_bytes / rank_count; /* what a rank keeps is copied, too */
}

int bw_bench_all2all(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err)
{
    static const struct bw_bench_collective all2all = {.kind = BW_ALL_TO_ALL,
                                                       .root = -1,
                                                       .copies_all = true,
                                                       .count = all2all_count,
                                                       .bus_factor = all2all_bus_factor,
                                                       .traffic = all2all_traffic,
                                                       .fill = all2all_fill,
                                                       .wrong = all2all_wrong};
    return bw_bench_collective_run(options, &all2all, document, err);
}
