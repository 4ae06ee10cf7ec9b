/* Goal (S10): what runs out on one of two or eight GPUs is named, and the others do not mind; memory that
 * other GPUs use may be freed right after the launch; it goes and comes back over page-table boundaries while
 * the others' tables name it. */
#include "tests/scenario/gpu_ring.h"

#include "hcq/hcq.h"

enum { VRAM_BYTES = 64 << 20 };

static const uint32_t counts[] = {2, 8};

/* ---- one GPU's memory runs out ---- */

enum { BUFFERS_MAX = 80, BUFFER_BYTES = 1 << 20 };

/* Until there is no more: so many. */
static uint32_t vram_take(struct rig *rig, uint32_t device, struct bw_buffer **buffers)
{
    char name[32];
    uint32_t count = 0;
    int rc = 0;
    while (count < BUFFERS_MAX && !rc) {
        rc = bw_buffer_create(rig->devices[device], BUFFER_BYTES, 0, &buffers[count], &rig->err);
        count += rc == 0;
    }
    snprintf(name, sizeof name, WAY "+amd:%u", device);
    BW_EQ(rc, -ENOMEM);
    BW_TRUE(error_says(&rig->err, name));
    BW_TRUE(count > 40); /* most of it */
    return count;
}

/* What was linked goes on while one GPU has no memory left; what would need more is refused with its name, or
 * fits into what there is, and works once there is memory again. */
static void one_of(uint32_t gpus)
{
    struct machine machine;
    struct gpu_ring ring = {0}, late = {0};
    struct bw_rng rng = {gpus};
    struct bw_buffer *buffers[BUFFERS_MAX] = {NULL};
    if (!machine_open(&machine, RIG_STEPPED, gpus, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    bool ok = gpu_ring_open(&ring, rig) && gpu_ring_works(&ring, &rng, 2);
    for (uint32_t round = 0; round < 3 && ok; round++) {
        uint32_t poor = (uint32_t)bw_rng_below(&rng, gpus), count = vram_take(rig, poor, buffers);
        ok = gpu_ring_works(&ring, &rng, 5);
        for (uint32_t i = 0; i < gpus && ok; i++)
            if (i != poor)
                mix_works(rig, i);
        late = (struct gpu_ring){.rig = rig, .count = gpus, .instances = 64};
        int rc = gpu_ring_buffers(&late);
        rc = rc ? rc : gpu_ring_link(&late);
        if (rc)
            BW_EQ(rc, -ENOMEM);
        for (uint32_t i = 0; i < count; i++)
            bw_buffer_destroy(buffers[i]);
        ok = ok && BW_OK(gpu_ring_buffers(&late), &rig->err) && BW_OK(gpu_ring_link(&late), &rig->err) &&
             gpu_ring_works(&late, &rng, 2) && gpu_ring_works(&ring, &rng, 2);
        gpu_ring_close(&late);
    }
    gpu_ring_close(&ring);
    machine_close(&machine);
}

static void memory_of_one_gpu_runs_out(void)
{
    for (size_t i = 0; i < BW_COUNT_OF(counts); i++)
        one_of(counts[i]);
}

/* ---- freed right after launch ---- */

static uint8_t pattern(uint32_t gpu, uint64_t at)
{
    return (uint8_t)(at * 7 + gpu * 31);
}

static struct bw_linked_graph *pass_on_link(struct rig *rig, struct bw_buffer **targets, uint32_t bytes)
{
    struct bw_graph *graph = rig_graph(rig);
    for (uint32_t i = 0; i < rig->device_count; i++) {
        uint32_t next = (i + 1) % rig->device_count;
        BW_OK(bw_graph_input(graph, i, rig->devices[i], &rig->err), &rig->err);
        BW_OK(bw_graph_copy(graph, rig->devices[i], range_all(targets[next]), range_input(i, 0, bytes),
                            &rig->err),
              &rig->err);
    }
    return rig_link(rig, graph);
}

/* Every GPU hands its input to the next one. The inputs are freed at once, others take their place. */
static void freed_right_after_launch(enum rig_machine kind, uint32_t gpus, uint32_t bytes)
{
    struct machine machine;
    struct bw_buffer *inputs[RIG_DEVICES_MAX], *targets[RIG_DEVICES_MAX], *others[RIG_DEVICES_MAX];
    uint64_t ticket;
    if (!machine_open(&machine, kind, gpus, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    uint8_t *data = malloc(bytes), *got = malloc(bytes);
    for (uint32_t i = 0; i < gpus; i++) {
        for (uint32_t k = 0; k < bytes; k++)
            data[k] = pattern(i, k);
        inputs[i] = rig_buffer(rig, i, bytes, 0);
        targets[i] = rig_buffer(rig, i, bytes, 0);
        BW_OK(bw_buffer_write(inputs[i], 0, data, bytes, &rig->err), &rig->err);
    }
    struct bw_linked_graph *linked = pass_on_link(rig, targets, bytes);
    struct bw_replay replay = {.inputs = inputs, .input_count = gpus};
    BW_OK(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), &rig->err);
    memset(data, 0xee, bytes);
    for (uint32_t i = 0; i < gpus; i++)
        bw_buffer_destroy(inputs[i]); /* the copies have hardly begun */
    for (uint32_t i = 0; i < gpus; i++) {
        others[i] = rig_buffer(rig, i, bytes, 0);
        BW_OK(bw_buffer_write(others[i], 0, data, bytes, &rig->err), &rig->err);
    }
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    for (uint32_t i = 0; i < gpus; i++) {
        for (uint32_t k = 0; k < bytes; k++)
            data[k] = pattern((i + gpus - 1) % gpus, k);
        BW_OK(bw_buffer_read(targets[i], 0, got, bytes, &rig->err), &rig->err);
        BW_BYTES(got, data, bytes);
        bw_buffer_destroy(targets[i]);
        bw_buffer_destroy(others[i]);
    }
    bw_linked_graph_destroy(linked);
    free(data);
    free(got);
    machine_close(&machine);
}

static void memory_that_others_read_may_be_freed_right_after_launch(void)
{
    for (size_t i = 0; i < BW_COUNT_OF(counts); i++) {
        for (int kind = RIG_STEPPED; kind <= RIG_THREADED; kind++) {
            freed_right_after_launch((enum rig_machine)kind, counts[i], 5000); /* a corner of a page table */
            freed_right_after_launch((enum rig_machine)kind, counts[i], (18 << 20) / counts[i]); /* several */
        }
    }
}

/* ---- mapped, unmapped, mapped again ---- */

enum { LEAF_BYTES = 2 << 20, PAGE_BYTES = 4096, ROUNDS = 3, ACROSS_BYTES = 64 };

/* Bytes around that offset of the GPU's buffer, from the next GPU and back to the one behind that. */
static void bytes_work(struct rig *rig, struct bw_buffer *buffer, uint32_t owner, uint64_t offset,
                       struct bw_rng *rng)
{
    uint32_t peer = (owner + 1) % rig->device_count;
    uint8_t data[ACROSS_BYTES], got[ACROSS_BYTES];
    struct bw_buffer *out = rig_buffer(rig, peer, sizeof data, 0),
                     *in = rig_buffer(rig, peer, sizeof data, 0);
    struct bw_range middle = {buffer, 0, offset, sizeof data};
    struct bw_graph *graph = rig_graph(rig);
    uint64_t ticket;
    for (uint32_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)bw_rng_next(rng);
    BW_OK(bw_buffer_write(out, 0, data, sizeof data, &rig->err), &rig->err);
    BW_OK(bw_graph_copy(graph, rig->devices[peer], middle, range_all(out), &rig->err), &rig->err);
    BW_OK(bw_graph_copy(graph, rig->devices[peer], range_all(in), middle, &rig->err), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    if (linked && BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err) &&
        BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err) &&
        BW_OK(bw_buffer_read(in, 0, got, sizeof got, &rig->err), &rig->err))
        BW_BYTES(got, data, sizeof data);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(out);
    bw_buffer_destroy(in);
}

/* At both ends and over every boundary of a page table's leaf: how many of those. */
static uint32_t buffer_works(struct rig *rig, struct bw_buffer *buffer, uint32_t owner, struct bw_rng *rng)
{
    uint64_t address = bw_buffer_address(buffer), size = bw_buffer_size(buffer);
    uint32_t crossed = 0;
    bytes_work(rig, buffer, owner, 0, rng);
    bytes_work(rig, buffer, owner, size - ACROSS_BYTES, rng);
    for (uint64_t boundary = bw_align_up(address + ACROSS_BYTES, LEAF_BYTES);
         boundary + ACROSS_BYTES < address + size; boundary += LEAF_BYTES, crossed++)
        bytes_work(rig, buffer, owner, boundary - address - ACROSS_BYTES / 2, rng);
    return crossed;
}

static void mapped_again(uint32_t gpus)
{
    static const uint64_t sizes[] = {LEAF_BYTES - PAGE_BYTES, LEAF_BYTES + PAGE_BYTES, 3 * LEAF_BYTES / 4,
                                     3 * LEAF_BYTES + PAGE_BYTES};
    struct machine machine;
    struct bw_rng rng = {gpus};
    uint32_t crossed = 0;
    if (!machine_open(&machine, RIG_STEPPED, gpus, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct bw_buffer *buffers[RIG_DEVICES_MAX][BW_COUNT_OF(sizes)] = {{NULL}};
        for (uint32_t i = 0; i < gpus * BW_COUNT_OF(sizes); i++) { /* each round in another order */
            uint32_t owner = i % gpus, slot = i / gpus;
            buffers[owner][slot] =
                rig_buffer(rig, owner, sizes[(slot + round + owner) % BW_COUNT_OF(sizes)], 0);
            if (!buffers[owner][slot])
                return;
            crossed += buffer_works(rig, buffers[owner][slot], owner, &rng);
        }
        uint64_t gone = bw_buffer_address(buffers[0][0]);
        for (uint32_t i = 0; i < gpus * BW_COUNT_OF(sizes); i++)
            bw_buffer_destroy(buffers[i % gpus][(i / gpus + round) % BW_COUNT_OF(sizes)]);
        for (uint32_t i = 0; i < gpus; i++) {
            BW_OK(bw_device_synchronize(rig->devices[i], &rig->err), &rig->err);
            bw_hcq_cache_flush(bw_hcq_device_of(rig->devices[i]), false);
        }
        struct bw_argument arguments[] = {argument_value(gone), argument_value(0)};
        for (uint32_t i = 0; i < 2; i++) { /* its owner, and a peer that had it in its tables */
            BW_EQ(run(rig, i, "store_at", arguments, 2), -EIO);
            BW_OK(bw_device_recover(rig->devices[i], &rig->err), &rig->err);
            mix_works(rig, i);
        }
    }
    BW_TRUE(crossed >= ROUNDS * gpus);
    machine_close(&machine);
}

static void memory_is_mapped_again_while_others_see_it(void)
{
    for (size_t i = 0; i < BW_COUNT_OF(counts); i++)
        mapped_again(counts[i]);
}

BW_TEST_MAIN("scenario.hcq_running_out_together", {"memory of one GPU runs out", memory_of_one_gpu_runs_out},
             {"memory that others read may be freed right after launch",
              memory_that_others_read_may_be_freed_right_after_launch},
             {"memory is mapped again while others see it", memory_is_mapped_again_while_others_see_it})
