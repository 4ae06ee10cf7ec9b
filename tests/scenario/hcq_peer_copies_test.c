/* Goal (S5): copies between GPUs, of two and of eight: zero bytes, odd bytes, unaligned on either side,
 * around the packet's maximum, around 2^32 and beyond, at offsets beyond 4 GiB. Bytes equal, neighbours
 * untouched; packets = ceil(bytes / maximum), counted in the mock's trace; through host memory where there is
 * no way. */
#include "tests/scenario/packet_list.h"
#include "tests/unit/hcq/mock_rig.h"

enum { ALIGNMENTS = 8, GUARD_BYTES = 64, SIZE_MAX_BYTES = 65537, FILL = 0xee };
#define SLOT_MAX_BYTES  (SIZE_MAX_BYTES + 2 * GUARD_BYTES + 2 * ALIGNMENTS)
#define SMALL_MAX_BYTES ((uint64_t)ALIGNMENTS * SLOT_MAX_BYTES)

/* ---- small ones ---- */

/* From every GPU to the next one, once from each alignment to a random one. */
struct small {
    struct machine *machine;
    struct packet_list list;
    struct bw_buffer *out[RIG_DEVICES_MAX], *in[RIG_DEVICES_MAX];
    uint8_t *bytes[RIG_DEVICES_MAX], *expected, *got;
    uint32_t gpus, skew[RIG_DEVICES_MAX][ALIGNMENTS];
    bool direct;
    struct bw_rng rng;
};

static uint64_t slot_bytes(uint32_t size)
{
    return size + 2 * GUARD_BYTES + 2 * ALIGNMENTS;
}

static struct bw_range range_of(struct bw_buffer *buffer, uint64_t offset, uint64_t size_bytes)
{
    return (struct bw_range){buffer, 0, offset, size_bytes};
}

static struct bw_linked_graph *small_link(struct small *small, uint32_t size)
{
    struct rig *rig = &small->machine->rig;
    struct bw_graph *graph = rig_graph(rig);
    for (uint32_t i = 0; i < small->gpus; i++) {
        for (uint32_t k = 0; k < ALIGNMENTS; k++) {
            uint64_t at = k * slot_bytes(size);
            small->skew[i][k] = GUARD_BYTES + (uint32_t)bw_rng_below(&small->rng, ALIGNMENTS);
            BW_OK(bw_graph_copy(graph, rig->devices[i],
                                range_of(small->in[(i + 1) % small->gpus], at + small->skew[i][k], size),
                                range_of(small->out[i], at + k, size), &rig->err),
                  &rig->err);
        }
    }
    return rig_link(rig, graph);
}

static void small_packets_check(struct small *small, uint32_t size)
{
    const uint64_t legs = small->direct ? 1 : 2;
    BW_EQ(small->list.count, size ? legs * small->gpus * ALIGNMENTS : 0);
    for (uint32_t i = 0; i < small->gpus && small->direct && size; i++) {
        for (uint32_t k = 0; k < ALIGNMENTS; k++) {
            uint64_t at = k * slot_bytes(size);
            uint64_t target = bw_buffer_address(small->in[(i + 1) % small->gpus]) + at + small->skew[i][k];
            uint32_t queues;
            BW_EQ(packet_list_copy(&small->list, target, bw_buffer_address(small->out[i]) + at + k, size,
                                   &queues),
                  1);
        }
    }
}

static void small_bytes_check(struct small *small, uint32_t size)
{
    struct rig *rig = &small->machine->rig;
    uint64_t all_bytes = ALIGNMENTS * slot_bytes(size);
    for (uint32_t i = 0; i < small->gpus; i++) {
        memset(small->expected, FILL, all_bytes);
        for (uint32_t k = 0; k < ALIGNMENTS; k++)
            memcpy(small->expected + k * slot_bytes(size) + small->skew[i][k],
                   small->bytes[i] + k * slot_bytes(size) + k, size);
        BW_OK(bw_buffer_read(small->in[(i + 1) % small->gpus], 0, small->got, all_bytes, &rig->err),
              &rig->err);
        BW_BYTES(small->got, small->expected, all_bytes);
    }
}

static void small_size(struct small *small, uint32_t size)
{
    struct rig *rig = &small->machine->rig;
    uint64_t ticket, all_bytes = ALIGNMENTS * slot_bytes(size);
    struct bw_linked_graph *linked = small_link(small, size);
    memset(small->expected, FILL, all_bytes);
    for (uint32_t i = 0; i < small->gpus; i++)
        BW_OK(bw_buffer_write(small->in[i], 0, small->expected, all_bytes, &rig->err), &rig->err);
    packet_list_begin(&small->list);
    if (BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err) &&
        BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err) && packet_list_end(&small->list)) {
        small_packets_check(small, size);
        small_bytes_check(small, size);
    }
    bw_linked_graph_destroy(linked);
}

static bool small_open(struct small *small)
{
    struct rig *rig = &small->machine->rig;
    bool ok = packet_list_open(&small->list, small->machine->sys);
    small->expected = malloc(SMALL_MAX_BYTES);
    small->got = malloc(SMALL_MAX_BYTES);
    for (uint32_t i = 0; i < small->gpus && ok; i++) {
        small->out[i] = rig_buffer(rig, i, SMALL_MAX_BYTES, 0);
        small->in[i] = rig_buffer(rig, i, SMALL_MAX_BYTES, 0);
        small->bytes[i] = malloc(SMALL_MAX_BYTES);
        ok = small->out[i] && small->in[i];
        for (uint64_t k = 0; k < SMALL_MAX_BYTES && ok; k++)
            small->bytes[i][k] = (uint8_t)bw_rng_next(&small->rng);
        ok = ok &&
             BW_OK(bw_buffer_write(small->out[i], 0, small->bytes[i], SMALL_MAX_BYTES, &rig->err), &rig->err);
    }
    return ok;
}

static void small_close(struct small *small)
{
    for (uint32_t i = 0; i < small->gpus; i++) {
        bw_buffer_destroy(small->out[i]);
        bw_buffer_destroy(small->in[i]);
        free(small->bytes[i]);
    }
    free(small->expected);
    free(small->got);
    packet_list_close(&small->list);
}

static void small_copies(uint32_t gpus, bool direct)
{
    static const uint32_t sizes[] = {
        0, 1, 2, 3, 4, 5, 7, 8, 15, 31, 63, 64, 255, 4095, 4096, 4097, 65535, 65536, SIZE_MAX_BYTES};
    enum { VRAM_BYTES = 64 << 20 };
    struct machine machine;
    struct bw_mock_config mock = {
        .gpu_count = gpus, .cu_count = 2, .vram_bytes = VRAM_BYTES, .bar_bytes = direct ? 0 : VRAM_BYTES / 2};
    struct small small = {.machine = &machine, .gpus = gpus, .direct = direct, .rng = {5}};
    if (!machine_open_config(&machine, RIG_STEPPED, mock, 0))
        return;
    if (small_open(&small))
        for (size_t i = 0; i < BW_COUNT_OF(sizes); i++)
            small_size(&small, sizes[i]);
    small_close(&small);
    machine_close(&machine);
}

static void small_copies_through_the_host(void)
{
    small_copies(2, false);
    small_copies(8, false);
}

/* What the kernel lets nobody share goes through the host, in any size, at the host's speed: no more of it.
 */
#ifdef BW_TESTS_DRM
#define DIRECT_TESTS
#else
static void small_copies_at_every_alignment(void)
{
    small_copies(2, true);
    small_copies(8, true);
}

/* ---- large ones ---- */

#define PACKET_BYTES (1ull << 30)
#define FAR_BYTES    (1ull << 32)

enum { LARGE = 8, MARKS_MAX = 16 };

struct large {
    uint32_t from, to;
    uint64_t size_bytes, source_offset, target_offset;
};

/* Each end of each packet, and of the whole: the bytes that a wrong cut would lose. */
static uint32_t marks_of(const struct large *large, uint64_t marks[MARKS_MAX])
{
    uint32_t count = 0;
    for (uint64_t at = 0; at < large->size_bytes; at += PACKET_BYTES) {
        uint64_t left = large->size_bytes - at;
        marks[count++] = at;
        if (left > 1)
            marks[count++] = at + (left < PACKET_BYTES ? left : PACKET_BYTES) - 1;
    }
    return count;
}

static void byte_write(struct rig *rig, struct bw_buffer *buffer, uint64_t offset, uint8_t value)
{
    BW_OK(bw_buffer_write(buffer, offset, &value, 1, &rig->err), &rig->err);
}

static uint8_t byte_read(struct rig *rig, struct bw_buffer *buffer, uint64_t offset)
{
    uint8_t value = 0;
    BW_OK(bw_buffer_read(buffer, offset, &value, 1, &rig->err), &rig->err);
    return value;
}

static uint8_t mark_value(const struct large *large, uint32_t mark)
{
    return (uint8_t)(1 + 16 * large->from + mark);
}

static void marks_write(struct rig *rig, const struct large *large, struct bw_buffer *const *out,
                        struct bw_buffer *const *in)
{
    uint64_t marks[MARKS_MAX];
    uint32_t count = marks_of(large, marks);
    for (uint32_t i = 0; i < count; i++)
        byte_write(rig, out[large->from], large->source_offset + marks[i], mark_value(large, i));
    byte_write(rig, in[large->to], large->target_offset - 1, FILL);
    byte_write(rig, in[large->to], large->target_offset + large->size_bytes, FILL);
}

static void marks_check(struct rig *rig, const struct large *large, struct bw_buffer *const *in)
{
    uint64_t marks[MARKS_MAX];
    uint32_t count = marks_of(large, marks);
    for (uint32_t i = 0; i < count; i++)
        BW_EQ(byte_read(rig, in[large->to], large->target_offset + marks[i]), mark_value(large, i));
    BW_EQ(byte_read(rig, in[large->to], large->target_offset - 1), FILL);
    BW_EQ(byte_read(rig, in[large->to], large->target_offset + large->size_bytes), FILL);
}

/* Engines that share a copy take no more packets than one would, unless it is less than one for each. */
static void large_packets_check(const struct packet_list *list, const struct large *large,
                                struct bw_buffer *const *out, struct bw_buffer *const *in)
{
    uint32_t queues, packets = packet_list_copy(list, bw_buffer_address(in[large->to]) + large->target_offset,
                                                bw_buffer_address(out[large->from]) + large->source_offset,
                                                large->size_bytes, &queues);
    uint64_t least = bw_div_up(large->size_bytes, PACKET_BYTES);
    BW_EQ(packets, least > queues ? least : queues);
}

static void large_round(struct rig *rig, struct packet_list *list, const struct large *copies, uint32_t count,
                        struct bw_buffer *const *out, struct bw_buffer *const *in)
{
    struct bw_graph *graph = rig_graph(rig);
    uint64_t ticket;
    for (uint32_t i = 0; i < count; i++) {
        marks_write(rig, &copies[i], out, in);
        BW_OK(bw_graph_copy(graph, rig->devices[copies[i].from],
                            range_of(in[copies[i].to], copies[i].target_offset, copies[i].size_bytes),
                            range_of(out[copies[i].from], copies[i].source_offset, copies[i].size_bytes),
                            &rig->err),
              &rig->err);
    }
    struct bw_linked_graph *linked = rig_link(rig, graph);
    packet_list_begin(list);
    if (linked && BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err) &&
        BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err) && packet_list_end(list)) {
        uint64_t expected_bytes = 0, total_bytes = 0;
        for (uint32_t i = 0; i < count; i++) {
            large_packets_check(list, &copies[i], out, in);
            marks_check(rig, &copies[i], in);
            expected_bytes += copies[i].size_bytes;
        }
        for (uint32_t i = 0; i < list->count; i++)
            total_bytes += list->packets[i].size_bytes;
        BW_EQ(total_bytes, expected_bytes);
    }
    bw_linked_graph_destroy(linked);
}

static void large_copies(uint32_t gpus)
{
    static const uint64_t sizes[LARGE] = {
        PACKET_BYTES - 1, PACKET_BYTES, PACKET_BYTES + 1, 2 * PACKET_BYTES,
        FAR_BYTES - 1,    FAR_BYTES,    FAR_BYTES + 1,    FAR_BYTES + PACKET_BYTES / 2 + 3};
    const uint64_t span = FAR_BYTES + sizes[LARGE - 1] + (1 << 20);
    struct bw_buffer *out[RIG_DEVICES_MAX], *in[RIG_DEVICES_MAX];
    struct bw_mock_config mock = {.gpu_count = gpus, .cu_count = 2, .vram_bytes = 24ull << 30};
    struct machine machine;
    struct packet_list list;
    if (!machine_open_config(&machine, RIG_STEPPED, mock, 0) || !packet_list_open(&list, machine.sys))
        return;
    struct rig *rig = &machine.rig;
    bool ok = true;
    for (uint32_t i = 0; i < gpus; i++) {
        out[i] = rig_buffer(rig, i, span, 0);
        in[i] = rig_buffer(rig, i, span, 0);
        ok &= out[i] && in[i];
    }
    for (uint32_t first = 0; first < LARGE && ok; first += gpus) {
        struct large copies[LARGE];
        for (uint32_t i = 0; i < gpus; i++)
            copies[i] = (struct large){i, (i + 1) % gpus, sizes[first + i], FAR_BYTES + 5 + i,
                                       FAR_BYTES + 3 + 2 * first};
        large_round(rig, &list, copies, gpus, out, in);
    }
    for (uint32_t i = 0; i < gpus; i++) {
        bw_buffer_destroy(out[i]);
        bw_buffer_destroy(in[i]);
    }
    packet_list_close(&list);
    machine_close(&machine);
}

static void large_copies_at_far_offsets(void)
{
    large_copies(2);
    large_copies(8);
}

#define DIRECT_TESTS                                                      \
    {"small copies at every alignment", small_copies_at_every_alignment}, \
        {"large copies at far offsets", large_copies_at_far_offsets},
#endif

BW_TEST_MAIN("scenario.hcq_peer_copies",
             DIRECT_TESTS{"small copies through the host", small_copies_through_the_host})
