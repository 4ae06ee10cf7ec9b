/* Goal (S10): what runs out is named with its limit, freed, and the work goes on: VRAM, scratch, grids,
 * arguments; memory goes and comes back under work that uses it. */
#include "tests/unit/hcq/mock_rig.h"

#include "hcq/hcq.h"
#if BW_HAVE_LLVM
#include "tests/hand_kernels.h"
#endif

enum { VRAM_BYTES = 64 << 20 };

static void vram_runs_out_and_comes_back(void)
{
    enum { BUFFERS_MAX = 200 };
    struct machine machine;
    if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffers[BUFFERS_MAX];
    for (int round = 0; round < 3; round++) {
        uint32_t count = 0;
        int rc = 0;
        while (count < BUFFERS_MAX && !rc) {
            rc =
                bw_buffer_create(rig->devices[0], (uint64_t)(1 + round) << 20, 0, &buffers[count], &rig->err);
            count += rc == 0;
        }
        BW_EQ(rc, -ENOMEM);
        BW_TRUE(count * (1u + (uint32_t)round) >= 40); /* most of 64 MiB */
        BW_TRUE(error_says(&rig->err, WAY "+amd:0"));
        for (uint32_t i = 0; i < count; i++) /* other sizes in the next round: the cache has to give way */
            bw_buffer_destroy(buffers[i]);
        mix_works(rig, 0);
    }
    machine_close(&machine);
}

static void scratch_may_grow_after_a_graph_was_linked(void)
{
    struct machine machine;
    uint32_t first[32], again[32];
    uint64_t ticket;
    if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *out = rig_buffer(rig, 0, sizeof first, 0);
    struct bw_argument arguments[] = {argument_range(range_all(out), BW_ACCESS_WRITE), argument_value(7)};
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2};
    struct bw_graph *graph = rig_graph(rig);
    BW_OK(bw_graph_kernel(graph, rig_kernel(rig, 0, "scratch_16"), &launch, &rig->err), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_buffer_read(out, 0, first, sizeof first, &rig->err), &rig->err);
    if (!BW_OK(run(rig, 0, "scratch_1024", arguments, 2), &rig->err)) {
        char text[400];
        bw_mock_last_error(machine.sys, text, sizeof text);
        printf("    mock: %s\n", text);
    }
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t memory[1024], sum = 0;
        for (uint32_t i = 0; i < 1024; i++)
            memory[i * 7 % 1024] = i + lane;
        for (uint32_t i = 0; i < 1024; i++)
            sum = sum * 3 + memory[i];
        if (!BW_OK(bw_buffer_read(out, lane * 4, &again[lane], 4, &rig->err), &rig->err) ||
            !BW_EQ(again[lane], sum))
            break;
    }
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    BW_OK(bw_buffer_read(out, 0, again, sizeof again, &rig->err), &rig->err);
    BW_BYTES(again, first, sizeof first);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(out);
    machine_close(&machine);
}

static void grids_past_their_limit_are_refused(void)
{
    struct machine machine;
    uint64_t ticket;
    if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    const uint32_t groups_max = UINT32_MAX / 32; /* work-items in 32 bits */
    struct bw_argument arguments[] = {argument_value(0), argument_value(0)};
    struct bw_launch launch = {.group_count = {{groups_max + 1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2};
    struct bw_kernel *kernel = rig_kernel(rig, 0, "store_at");
    struct bw_graph *graph = rig_graph(rig);
    BW_EQ(bw_graph_kernel(graph, kernel, &launch, &rig->err), -EINVAL);
    BW_TRUE(error_says(&rig->err, "2^32-1"));
    launch.group_size[0] = 2048; /* more than a workgroup holds */
    launch.group_count[0].value = 1;
    BW_EQ(bw_graph_kernel(graph, kernel, &launch, &rig->err), -EINVAL);
    launch.group_size[0] = 32;
    launch.group_count[0] = (struct bw_dimension){0, true};
    BW_OK(bw_graph_kernel(graph, kernel, &launch, &rig->err), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    uint32_t groups = groups_max + 1;
    struct bw_replay replay = {.variables = &groups, .variable_count = 1};
    BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), -EINVAL);
    groups = 0;
    BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), -EINVAL);
    bw_linked_graph_destroy(linked);
    machine_close(&machine);
}

static void freed_right_after_launch(enum rig_machine kind, uint32_t bytes)
{
    struct machine machine;
    uint64_t ticket;
    if (!machine_open(&machine, kind, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    uint8_t *source = malloc(bytes), *junk = malloc(bytes), target[64], got[64];
    memset(source, 3, bytes);
    memset(junk, 0xee, bytes);
    memset(target, 1, sizeof target);
    struct bw_buffer *result = rig_buffer(rig, 0, sizeof target, 0), *input = rig_buffer(rig, 0, bytes, 0);
    BW_OK(bw_buffer_write(result, 0, target, sizeof target, &rig->err), &rig->err);
    BW_OK(bw_buffer_write(input, 0, source, bytes, &rig->err), &rig->err);
    struct bw_graph *graph = rig_graph(rig);
    for (uint32_t i = 0; i < 10; i++)
        BW_OK(mix_add(rig, graph, 0, range_all(result), range_input(0, bytes - 64, 64), i, -1), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    struct bw_replay replay = {.inputs = &input, .input_count = 1};
    BW_OK(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), &rig->err);
    bw_buffer_destroy(input); /* the launch has hardly begun */
    struct bw_buffer *others[2];
    for (int i = 0; i < 2; i++) {
        others[i] = rig_buffer(rig, 0, bytes, 0);
        if (others[i])
            BW_OK(bw_buffer_write(others[i], 0, junk, bytes, &rig->err), &rig->err);
    }
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    BW_OK(bw_buffer_read(result, 0, got, sizeof got, &rig->err), &rig->err);
    for (uint32_t i = 0; i < 10; i++)
        mix_run(target, sizeof target, source, 64, i);
    BW_BYTES(got, target, sizeof target);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(others[0]);
    bw_buffer_destroy(others[1]);
    bw_buffer_destroy(result);
    free(source);
    free(junk);
    machine_close(&machine);
}

static void memory_may_be_freed_right_after_launch(void)
{
    for (int kind = RIG_STEPPED; kind <= RIG_THREADED; kind++) {
        freed_right_after_launch((enum rig_machine)kind, 5000);     /* would be reused at once */
        freed_right_after_launch((enum rig_machine)kind, 20 << 20); /* would be unmapped at once */
    }
}

/* A word at that address, by a kernel, and read back through the buffer. */
static void word_works(struct rig *rig, struct bw_buffer *buffer, uint64_t offset, uint32_t value)
{
    uint32_t got = 0;
    struct bw_argument arguments[] = {argument_value(bw_buffer_address(buffer) + offset),
                                      argument_value(value)};
    if (BW_OK(run(rig, 0, "store_at", arguments, 2), &rig->err) &&
        BW_OK(bw_buffer_read(buffer, offset, &got, sizeof got, &rig->err), &rig->err))
        BW_EQ(got, value);
}

static void memory_is_mapped_again_over_page_table_boundaries(void)
{
    enum { LEAF_BYTES = 2 << 20, PAGE_BYTES = 4096, BUFFERS = 6, ROUNDS = 3 };
    static const uint64_t sizes[BUFFERS] = {LEAF_BYTES - PAGE_BYTES,     LEAF_BYTES,
                                            LEAF_BYTES + PAGE_BYTES,     3 * LEAF_BYTES / 4,
                                            5 * LEAF_BYTES + PAGE_BYTES, 3 * LEAF_BYTES / 4};
    struct machine machine;
    if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    uint32_t crossed = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct bw_buffer *buffers[BUFFERS];
        for (uint32_t i = 0; i < BUFFERS; i++) { /* each round in another order, so that others lie there */
            uint64_t size = sizes[(i + 2 * round) % BUFFERS];
            buffers[i] = rig_buffer(rig, 0, size, 0);
            if (!buffers[i])
                return;
            uint64_t address = bw_buffer_address(buffers[i]), boundary = bw_align_up(address + 1, LEAF_BYTES);
            word_works(rig, buffers[i], 0, round * 100 + i);
            word_works(rig, buffers[i], size - 4, round * 100 + i + 50);
            for (; boundary < address + size; boundary += LEAF_BYTES) {
                word_works(rig, buffers[i], boundary - address - 4, 1);
                word_works(rig, buffers[i], boundary - address, 2);
                word_works(rig, buffers[i], boundary - address - 2, 0x01020304); /* over it */
                crossed++;
            }
        }
        uint64_t address = bw_buffer_address(buffers[0]), size = bw_buffer_size(buffers[0]);
        for (uint32_t i = 0; i < BUFFERS; i++)
            bw_buffer_destroy(buffers[(i * 5) % BUFFERS]);
        BW_OK(bw_device_synchronize(rig->devices[0], &rig->err), &rig->err);
        bw_hcq_cache_flush(bw_hcq_device_of(rig->devices[0]), false);
        struct bw_argument arguments[] = {argument_value(address + size - 4), argument_value(0)};
        BW_EQ(run(rig, 0, "store_at", arguments, 2), -EIO); /* it is gone */
        BW_TRUE(error_says(&rig->err, "freed"));
        BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
    }
    BW_TRUE(crossed >= ROUNDS * 6);
    machine_close(&machine);
}

/* ---- kernels made by hand ---- */

#if BW_HAVE_LLVM

struct hand {
    struct hand_kernel shape;
    struct bw_program *program;
    struct bw_linked_graph *linked;
};

/* Assembles, loads and links one launch that writes 32 words to out. 0 or the error of linking. */
static int hand_link(struct rig *rig, struct hand *hand, struct bw_buffer *out, uint32_t value)
{
    uint64_t object_bytes = 0;
    struct bw_kernel *kernel = NULL;
    struct bw_graph *graph = rig_graph(rig);
    uint32_t count = hand->shape.argument_count;
    struct bw_argument *arguments = calloc(count + 1, sizeof *arguments);
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = arguments,
                               .argument_count = count};
    arguments[0] = argument_range(range_all(out), BW_ACCESS_WRITE);
    for (uint32_t i = 1; i < count; i++)
        arguments[i] = argument_value(i + 1 < count ? UINT64_MAX : value);
    void *object = hand_kernel_assemble(&hand->shape, &object_bytes);
    int rc =
        object ? bw_program_load(rig->devices[0], object, object_bytes, &hand->program, &rig->err) : -ENOENT;
    free(object);
    if (!rc)
        rc = bw_program_kernel(hand->program, "hand", &kernel, &rig->err);
    if (!rc)
        rc = bw_graph_kernel(graph, kernel, &launch, &rig->err);
    if (!rc)
        rc = bw_graph_link(graph, NULL, &hand->linked, &rig->err);
    bw_graph_destroy(graph);
    free(arguments);
    return rc;
}

static void hand_works(struct rig *rig, struct hand *hand, struct bw_buffer *out, uint32_t value)
{
    uint32_t got[32] = {0};
    uint64_t ticket;
    BW_OK(bw_buffer_write(out, 0, got, sizeof got, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_replay(hand->linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(hand->linked, ticket, &rig->err), &rig->err);
    BW_OK(bw_buffer_read(out, 0, got, sizeof got, &rig->err), &rig->err);
    for (uint32_t i = 0; i < 32; i++)
        if (!BW_EQ(got[i], value + i))
            break;
}

static void hand_free(struct hand *hand)
{
    bw_linked_graph_destroy(hand->linked);
    bw_program_destroy(hand->program);
}

/* Kernels that want ever more, each linked before the next one makes scratch grow: all of them stay right. */
static void scratch_grows_by_hand(void)
{
    static const uint32_t sizes[] = {16, 128, 132, 1000, 4096, 20000, 65536, 131072, 262136};
    struct machine machine;
    struct hand hands[BW_COUNT_OF(sizes)] = {0};
    struct bw_mock_config mock = {.cu_count =
                                      2}; /* the chip's own 24 GiB, of which next to nothing is touched */
    if (!machine_open_config(&machine, RIG_STEPPED, mock, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *out = rig_buffer(rig, 0, 128, 0);
    for (uint32_t i = 0; i < BW_COUNT_OF(sizes); i++) {
        hands[i].shape = (struct hand_kernel){12, 2, sizes[i]};
        if (!BW_OK(hand_link(rig, &hands[i], out, 1000 * i), &rig->err))
            break;
        for (uint32_t k = 0; k <= i; k++)
            hand_works(rig, &hands[k], out, 1000 * k);
    }
    struct hand beyond = {.shape = {12, 2, 262140}};
    BW_EQ(hand_link(rig, &beyond, out, 0), -E2BIG);
    BW_TRUE(
        error_says(&rig->err, "kernel hand: 262140 bytes of scratch per work-item: expected at most 262136"));
    hand_free(&beyond);
    for (uint32_t i = 0; i < BW_COUNT_OF(sizes); i++) {
        if (hands[i].linked)
            hand_works(rig, &hands[i], out, 1000 * i);
        hand_free(&hands[i]);
    }
    bw_buffer_destroy(out);
    machine_close(&machine);
}

/* The kernel that cannot have its scratch is refused by name; those that have theirs go on. */
static void scratch_growth_that_fails_harms_nobody(void)
{
    struct machine machine;
    struct hand small = {.shape = {12, 2, 64}}, large = {.shape = {12, 2, 65536}},
                fair = {.shape = {12, 2, 1024}};
    if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *out = rig_buffer(rig, 0, 128, 0);
    BW_OK(hand_link(rig, &small, out, 5), &rig->err);
    hand_works(rig, &small, out, 5);
    BW_EQ(hand_link(rig, &large, out, 6), -ENOMEM); /* 2 MiB for each of 192 waves */
    BW_TRUE(error_says(&rig->err, "kernel hand: scratch of 65536 bytes per work-item"));
    BW_TRUE(error_says(&rig->err, "402653184 bytes for 192 waves"));
    BW_TRUE(error_says(&rig->err, WAY "+amd:0@gfx1100"));
    hand_works(rig, &small, out, 5);
    BW_OK(bw_mock_fault_add(machine.sys,
                            WAY_EITHER("ioctl.ALLOC_MEMORY_OF_GPU:fail=ENOMEM,nth=2,count=100",
                                       "ioctl.GEM_CREATE:fail=ENOMEM,nth=2,count=100"),
                            &rig->err),
          &rig->err);
    BW_EQ(hand_link(rig, &fair, out, 7), -ENOMEM);
    hand_works(rig, &small, out, 5);
    bw_mock_fault_clear(machine.sys);
    hand_free(&fair);
    fair = (struct hand){.shape = fair.shape};
    BW_OK(hand_link(rig, &fair, out, 7), &rig->err);
    hand_works(rig, &fair, out, 7);
    hand_works(rig, &small, out, 5);
    matmul_works(rig, 0);
    hand_free(&small);
    hand_free(&large);
    hand_free(&fair);
    bw_buffer_destroy(out);
    machine_close(&machine);
}

/* ---- arguments ---- */

static void arguments_of_every_size(void)
{
    enum { LIMIT_BYTES = 65536, IN_FLIGHT = 9 };
    static const struct hand_kernel shapes[] = {{12, 2, 0},
                                                {64, 2, 0},
                                                {1000, 60, 0},
                                                {4096, 250, 0},
                                                {32768, 2, 0},
                                                {LIMIT_BYTES - 4, 2, 0},
                                                {LIMIT_BYTES, 4095, 0}};
    struct machine machine;
    uint64_t ticket;
    if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *out = rig_buffer(rig, 0, 128, 0);
    BW_OK(run(rig, 0, "nothing", NULL, 0), &rig->err);
    struct hand none = {.shape = {0, 0, 0}}, past = {.shape = {LIMIT_BYTES + 4, 2, 0}},
                bare = {.shape = {12, 0, 0}};
    BW_OK(hand_link(rig, &none, out, 0), &rig->err);
    BW_OK(bw_linked_graph_replay(none.linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(none.linked, ticket, &rig->err), &rig->err);
    for (uint32_t i = 0; i < BW_COUNT_OF(shapes); i++) {
        struct hand hand = {.shape = shapes[i]};
        if (BW_OK(hand_link(rig, &hand, out, i), &rig->err)) {
            for (uint32_t round = 0; round < IN_FLIGHT; round++) /* in all more than the ring of 64 KiB */
                BW_OK(bw_linked_graph_replay(hand.linked, NULL, &ticket, &rig->err), &rig->err);
            hand_works(rig, &hand, out, i);
        }
        hand_free(&hand);
    }
    BW_EQ(hand_link(rig, &past, out, 0), -E2BIG);
    BW_TRUE(error_says(&rig->err, "arguments of 65540 bytes: expected at most 65536"));
    BW_EQ(hand_link(rig, &bare, out, 0), -EINVAL);
    BW_TRUE(error_says(&rig->err, "kernel hand: 12 bytes of arguments that nobody described"));
    hand_free(&none);
    hand_free(&past);
    hand_free(&bare);
    bw_buffer_destroy(out);
    machine_close(&machine);
}
#define HAND_TESTS                                                                          \
    {"scratch grows by hand", scratch_grows_by_hand},                                       \
        {"scratch growth that fails harms nobody", scratch_growth_that_fails_harms_nobody}, \
        {"arguments of every size", arguments_of_every_size},
#else
#define HAND_TESTS
#endif

BW_TEST_MAIN("scenario.hcq_running_out",
             HAND_TESTS{"VRAM runs out and comes back", vram_runs_out_and_comes_back},
             {"memory may be freed right after launch", memory_may_be_freed_right_after_launch},
             {"memory is mapped again over page table boundaries",
              memory_is_mapped_again_over_page_table_boundaries},
             {"scratch may grow after a graph was linked", scratch_may_grow_after_a_graph_was_linked},
             {"grids past their limit are refused", grids_past_their_limit_are_refused})
