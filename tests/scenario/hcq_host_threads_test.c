/* Goal (S12): one and many host threads of the emulator give identical bits, run after run, for kernels whose
 * result does not depend on the order of atomics; and so does single-step mode. */
#include "tests/seed.h"
#include "tests/unit/hcq/mock_rig.h"

enum { N = 96, BYTES = N * N * sizeof(float), SUM_WAVES = 64 };

struct results {
    float product[N * N];
    uint8_t mixed[BYTES];
    uint32_t sum;
};

static const float *operand(struct bw_rng *rng, float *values)
{
    /* Of very different sizes, so that each order of additions would round differently. */
    for (int i = 0; i < N * N; i++)
        values[i] = (float)(bw_rng_unit(rng) - 0.5) * (float)((uint64_t)1 << bw_rng_below(rng, 30));
    return values;
}

/* A product of matrices, one group per row; a mix of its bytes; and a sum of many waves by atomics. */
static void work(struct rig *rig, struct results *results)
{
    struct bw_buffer *buffers[5];
    struct bw_rng rng = {11};
    float values[N * N];
    for (int i = 0; i < 5; i++)
        buffers[i] = rig_buffer(rig, 0, BYTES, 0);
    for (int i = 1; i < 4; i++)
        BW_OK(bw_buffer_write(buffers[i], 0, operand(&rng, values), BYTES, &rig->err), &rig->err);
    struct bw_argument product[] = {argument_range(range_all(buffers[0]), BW_ACCESS_WRITE),
                                    argument_range(range_all(buffers[1]), BW_ACCESS_READ),
                                    argument_range(range_all(buffers[2]), BW_ACCESS_READ), argument_value(N)};
    BW_OK(run_groups(rig, 0, "matmul", N, 32, product, 4), &rig->err);
    BW_OK(bw_buffer_read(buffers[0], 0, results->product, BYTES, &rig->err), &rig->err);
    struct bw_graph *graph = rig_graph(rig);
    uint64_t ticket;
    BW_OK(mix_add(rig, graph, 0, range_all(buffers[3]), range_all(buffers[0]), 5, -1), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    bw_linked_graph_destroy(linked);
    BW_OK(bw_buffer_read(buffers[3], 0, results->mixed, BYTES, &rig->err), &rig->err);
    uint32_t zero = 0;
    BW_OK(bw_buffer_write(buffers[4], 0, &zero, sizeof zero, &rig->err), &rig->err);
    struct bw_argument sum[] = {argument_value(bw_buffer_address(buffers[4])), argument_value(3)};
    BW_OK(run_groups(rig, 0, "atomic_at", SUM_WAVES, 32, sum, 2), &rig->err);
    BW_OK(bw_buffer_read(buffers[4], 0, &results->sum, sizeof zero, &rig->err), &rig->err);
    for (int i = 0; i < 5; i++)
        bw_buffer_destroy(buffers[i]);
}

static bool results_make(uint32_t threads, bool single_step, struct results *results)
{
    struct bw_mock_config mock = {.size = sizeof mock,
                                  .arch = "gfx1100",
                                  .cu_count = 4,
                                  .vram_bytes = 64 << 20,
                                  .threads = threads,
                                  .kfd_absent = WAY_DRM,
                                  .single_step = single_step,
                                  .seed = 5};
    static const char *const names[] = {WAY "+amd:0", NULL};
    struct machine machine;
    struct bw_err err;
    if (!BW_OK(bw_mock_kfd_create(&mock, &machine.sys, &err), &err))
        return false;
    struct bw_ctx_config config = {.size = sizeof config, .sys = machine.sys};
    bool ok = rig_open(&machine.rig, &config, names);
    if (ok)
        work(&machine.rig, results);
    machine_close(&machine);
    return ok;
}

static void many_threads_give_the_bits_of_one(void)
{
    struct results *one = calloc(1, sizeof *one), *many = calloc(1, sizeof *many);
    if (!BW_TRUE(one && many) || !results_make(1, false, one))
        return;
    BW_EQ(one->sum, 3 * SUM_WAVES);
    for (uint32_t threads = 1; threads <= 8; threads += threads == 1 ? 1 : 2) {
        memset(many, 0, sizeof *many);
        if (results_make(threads, false, many))
            BW_BYTES(many, one, sizeof *one);
    }
    memset(many, 0, sizeof *many);
    if (results_make(1, true, many))
        BW_BYTES(many, one, sizeof *one);
    free(one);
    free(many);
}

BW_TEST_MAIN("scenario.hcq_host_threads",
             {"many threads give the bits of one", many_threads_give_the_bits_of_one})
