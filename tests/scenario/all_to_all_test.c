/* S11: every GPU of two and of eight sends to every other one, with full peer access, with pairs that are
 * missing, with a window that swallows writes, and with one that stalls: the same bytes arrive. A pair is
 * used directly only after a write was seen on the owner's side, in that direction. */
#include <errno.h>

#include "base/bits.h"
#include "tests/scenario/box.h"
#include "tests/scenario/packet_list.h"
#include "tests/seed.h"

/* Until a stalled window is given up; above what a loaded machine keeps a thread waiting. */
#define WAIT_NS 1000000000ull

enum { PART_BYTES = 3001, ALL_BYTES = GPUS_MAX * PART_BYTES, REPLAYS = 3 };

static struct bw_linked_graph *all_to_all_link(struct box *box)
{
    struct bw_copy_lane lanes[GPUS_MAX * (GPUS_MAX - 1)];
    struct bw_linked_graph *linked = NULL;
    struct bw_graph *graph;
    uint32_t count = 0;
    for (uint32_t from = 0; from < box->gpus; from++) {
        for (uint32_t to = 0; to < box->gpus; to++) {
            if (from != to)
                lanes[count++] =
                    (struct bw_copy_lane){box->devices[from],
                                          {box->in[to], 0, (uint64_t)from * PART_BYTES, PART_BYTES},
                                          {box->out[from], 0, (uint64_t)to * PART_BYTES, PART_BYTES}};
        }
    }
    BW_OK(bw_graph_create(box->ctx, &graph, &box->err), &box->err);
    BW_OK(bw_graph_copy_lanes(graph, lanes, count, &box->err), &box->err);
    BW_OK(bw_graph_link(graph, NULL, &linked, &box->err), &box->err);
    bw_graph_destroy(graph);
    return linked;
}

static void round_fill(struct box *box, uint8_t (*out)[ALL_BYTES], struct bw_rng *rng)
{
    for (uint32_t i = 0; i < box->gpus; i++) {
        for (uint32_t k = 0; k < ALL_BYTES; k++)
            out[i][k] = (uint8_t)bw_rng_next(rng);
        BW_OK(bw_buffer_write(box->out[i], 0, out[i], ALL_BYTES, &box->err), &box->err);
    }
}

static bool round_check(struct box *box, uint8_t (*out)[ALL_BYTES])
{
    static uint8_t got[ALL_BYTES];
    bool ok = true;
    for (uint32_t to = 0; to < box->gpus && ok; to++) {
        ok = BW_OK(bw_buffer_read(box->in[to], 0, got, ALL_BYTES, &box->err), &box->err);
        for (uint32_t from = 0; from < box->gpus && ok; from++) {
            if (from != to)
                ok = BW_BYTES(got + (size_t)from * PART_BYTES, out[from] + (size_t)to * PART_BYTES,
                              PART_BYTES);
        }
    }
    return ok;
}

static uint32_t direct_pairs(struct box *box)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < box->gpus * box->gpus; i++) {
        struct bw_link link = {0};
        BW_OK(bw_device_link(box->devices[i / box->gpus], box->devices[i % box->gpus], &link, &box->err),
              &box->err);
        BW_TRUE((link.kind == BW_LINK_SELF) == (i / box->gpus == i % box->gpus));
        count += link.kind == BW_LINK_PCIE;
    }
    return count;
}

/* Each byte of each pair once, in one packet, and no GPU stands by. */
static void packets_check(struct box *box, const struct packet_list *list)
{
    BW_EQ(list->count, box->gpus * (box->gpus - 1));
    for (uint32_t i = 0; i < box->gpus * box->gpus; i++) {
        uint32_t from = i / box->gpus, to = i % box->gpus, queues;
        uint64_t target = bw_buffer_address(box->in[to]) + (uint64_t)from * PART_BYTES,
                 source = bw_buffer_address(box->out[from]) + (uint64_t)to * PART_BYTES;
        if (from != to)
            BW_EQ(packet_list_copy(list, target, source, PART_BYTES, &queues), 1);
    }
    for (uint32_t gpu = 0; gpu < box->gpus; gpu++) {
        uint32_t packets = 0;
        char name[32];
        snprintf(name, sizeof name, "gpu%u ", gpu);
        for (uint32_t i = 0; i < list->count; i++)
            packets += strncmp(list->packets[i].queue, name, strlen(name)) == 0;
        BW_EQ(packets, box->gpus - 1);
    }
}

static void all_to_all(uint32_t gpus, uint64_t bar_bytes, const char *const *faults, uint32_t pairs_expected)
{
    static uint8_t out[GPUS_MAX][ALL_BYTES];
    struct bw_rng rng = bw_test_rng("all to all");
    struct box box;
    struct packet_list list;
    uint64_t ticket;
    if (!box_open(&box,
                  (struct bw_mock_config){.gpu_count = gpus, .vram_bytes = 64 << 20, .bar_bytes = bar_bytes},
                  ALL_BYTES, WAIT_NS, faults) ||
        !packet_list_open(&list, box.sys))
        return;
    struct bw_linked_graph *linked = all_to_all_link(&box);
    for (int round = 0; round < REPLAYS && linked; round++) {
        round_fill(&box, out, &rng);
        packet_list_begin(&list);
        if (!BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &box.err), &box.err) ||
            !BW_OK(bw_linked_graph_wait(linked, ticket, &box.err), &box.err) || !packet_list_end(&list) ||
            !round_check(&box, out))
            break;
        if (pairs_expected == gpus * (gpus - 1))
            packets_check(&box, &list);
    }
    BW_EQ(direct_pairs(&box), pairs_expected);
    bw_linked_graph_destroy(linked);
    packet_list_close(&list);
    box_close(&box);
}

static const uint32_t counts[] = {2, 8};

static void full_access(void)
{
    for (size_t i = 0; i < BW_COUNT_OF(counts); i++)
        all_to_all(counts[i], 0, (const char *const[]){NULL}, counts[i] * (counts[i] - 1));
}

static void no_access_at_all(void)
{
    for (size_t i = 0; i < BW_COUNT_OF(counts); i++)
        all_to_all(counts[i], 32 << 20, (const char *const[]){NULL}, 0); /* BARs over half of VRAM */
}

static void pairs_that_are_missing(void)
{
    all_to_all(2, 0, (const char *const[]){"link.1-0:fail=EINVAL", NULL}, 1);
    all_to_all(2, 0, (const char *const[]){"link.0-1:fail=EINVAL", "link.1-0:fail=EINVAL", NULL}, 0);
    all_to_all(
        8, 0,
        (const char *const[]){"link.0-1:fail=EINVAL", "link.1-0:fail=EINVAL", "link.5-2:fail=EINVAL", NULL},
        8 * 7 - 3);
}

static void windows_that_swallow_writes(void)
{
    all_to_all(2, 0, (const char *const[]){"link.0-1:drop", NULL}, 1);
    all_to_all(2, 0, (const char *const[]){"link.0-1:drop", "link.1-0:drop", NULL}, 0);
    all_to_all(8, 0, (const char *const[]){"link.2-4:drop", "link.7-0:drop", NULL}, 8 * 7 - 2);
}

static void windows_that_stall(void)
{
    all_to_all(2, 0, (const char *const[]){"link.1-0:hang", NULL}, 1);
    all_to_all(8, 0, (const char *const[]){"link.6-7:hang", NULL}, 8 * 7 - 1);
}

static void windows_that_are_slow_are_used(void)
{
    all_to_all(2, 0, (const char *const[]){"link.0-1:delay=20", NULL}, 2);
    all_to_all(8, 0, (const char *const[]){"link.1-3:delay=20", NULL}, 8 * 7);
}

/* One direction says nothing about the other, and the reason is told. */
static void each_direction_is_proved_by_itself(void)
{
    struct box box;
    struct bw_link link = {0};
    if (!box_open(&box, (struct bw_mock_config){.gpu_count = 8, .vram_bytes = 64 << 20}, ALL_BYTES, WAIT_NS,
                  (const char *const[]){"link.0-1:drop", NULL}))
        return;
    BW_OK(bw_device_link(box.devices[0], box.devices[1], &link, &box.err), &box.err);
    BW_EQ(link.kind, BW_LINK_NONE);
    BW_EQ(box.err.code, -EOPNOTSUPP);
    BW_TRUE(strstr(box.err.what, "kfd+amd:0@gfx1100 does not reach memory of kfd+amd:1@gfx1100") != NULL);
    BW_TRUE(box.err.observed[0]);
    BW_OK(bw_device_link(box.devices[1], box.devices[0], &link, &box.err), &box.err);
    BW_EQ(link.kind, BW_LINK_PCIE);
    BW_EQ(link.weight, 40);
    BW_EQ(link.bandwidth_mb_per_s, 31504);
    struct bw_mock_stats before, after; /* once per pair */
    bw_mock_stats(box.sys, &before);
    BW_EQ(direct_pairs(&box), 8 * 7 - 1);
    bw_mock_stats(box.sys, &after);
    BW_TRUE(after.ioctls > before.ioctls);
    BW_EQ(direct_pairs(&box), 8 * 7 - 1);
    bw_mock_stats(box.sys, &before);
    BW_EQ(before.ioctls, after.ioctls);
    BW_EQ(before.sdma_packets, after.sdma_packets);
    box_close(&box);
}

BW_TEST_MAIN("all to all", {"full_access", full_access}, {"no_access_at_all", no_access_at_all},
             {"pairs_that_are_missing", pairs_that_are_missing},
             {"windows_that_swallow_writes", windows_that_swallow_writes},
             {"windows_that_stall", windows_that_stall},
             {"windows_that_are_slow_are_used", windows_that_are_slow_are_used},
             {"each_direction_is_proved_by_itself", each_direction_is_proved_by_itself})
