/* What the tests of hcq on mock GPUs share: a machine, a launch, a check that the device works. */
#ifndef BW_TESTS_HCQ_MOCK_RIG_H
#define BW_TESTS_HCQ_MOCK_RIG_H

#include <bellwire/mock.h>

#include "base/bits.h"
#include "tests/unit/hcq/rig.h"
#include "tests/way.h"

/* The deadline where a test provokes a hang, of the virtual clock of a machine that is stepped. */
#define RIG_WAIT_NS 200000000ull

enum rig_machine {
    RIG_STEPPED,  /* one thread, virtual time, an order fixed by the seed: nothing depends on the host's load
                   */
    RIG_THREADED, /* real concurrency, real time, the default deadline */
};

/* A mock machine with `gpus` GPUs as the context's operating system, so that faults can be put into it. */
struct machine {
    struct bw_sys *sys;
    struct rig rig;
};

static inline bool machine_open_config(struct machine *machine, enum rig_machine kind,
                                       struct bw_mock_config mock, uint64_t timeline_start)
{
    static const char *const names[RIG_DEVICES_MAX] = {WAY "+amd:0", WAY "+amd:1", WAY "+amd:2",
                                                       WAY "+amd:3", WAY "+amd:4", WAY "+amd:5",
                                                       WAY "+amd:6", WAY "+amd:7"};
    const char *opened[RIG_DEVICES_MAX + 1] = {NULL};
    struct bw_err err;
    memcpy(opened, names, (mock.gpu_count ? mock.gpu_count : 1) * sizeof *names);
    mock.size = sizeof mock;
    mock.arch = "gfx1100";
    mock.threads = 1;
    mock.kfd_absent = WAY_DRM;
    mock.single_step = kind == RIG_STEPPED;
    mock.seed = 7;
    if (!BW_OK(bw_mock_kfd_create(&mock, &machine->sys, &err), &err))
        return false;
    struct bw_ctx_config config = {.size = sizeof config,
                                   .sys = machine->sys,
                                   .wait_ns = kind == RIG_STEPPED ? RIG_WAIT_NS : 0,
                                   .timeline_start = timeline_start};
    return rig_open(&machine->rig, &config, opened);
}

static inline bool machine_open(struct machine *machine, enum rig_machine kind, uint32_t gpus,
                                uint64_t vram_bytes, uint64_t timeline_start)
{
    struct bw_mock_config mock = {.gpu_count = gpus, .cu_count = 2, .vram_bytes = vram_bytes};
    return machine_open_config(machine, kind, mock, timeline_start);
}

static inline void machine_close(struct machine *machine)
{
    rig_close(&machine->rig);
    bw_sys_destroy(machine->sys);
}

/* One launch of that many groups, waited for. */
static inline int run_groups(struct rig *rig, uint32_t device, const char *name, uint32_t groups,
                             uint32_t group_size, const struct bw_argument *arguments, uint32_t count)
{
    struct bw_graph *graph = rig_graph(rig);
    struct bw_launch launch = {.group_count = {{groups, false}, {1, false}, {1, false}},
                               .group_size = {group_size, 1, 1},
                               .arguments = arguments,
                               .argument_count = count};
    struct bw_linked_graph *linked = NULL;
    struct bw_kernel *kernel = rig_kernel(rig, device, name);
    uint64_t ticket;
    int rc = kernel ? bw_graph_kernel(graph, kernel, &launch, &rig->err) : -ENOENT;
    if (!rc)
        rc = bw_graph_link(graph, NULL, &linked, &rig->err);
    bw_graph_destroy(graph);
    if (!rc)
        rc = bw_linked_graph_replay(linked, NULL, &ticket, &rig->err);
    if (!rc)
        rc = bw_linked_graph_wait(linked, ticket, &rig->err);
    bw_linked_graph_destroy(linked);
    return rc;
}

/* One launch of one wave, waited for. */
static inline int run(struct rig *rig, uint32_t device, const char *name, const struct bw_argument *arguments,
                      uint32_t count)
{
    return run_groups(rig, device, name, 1, 32, arguments, count);
}

/* A product of two matrices of small integers, exact in float. */
static inline void matmul_works(struct rig *rig, uint32_t device)
{
    enum { N = 40, BYTES = N * N * sizeof(float) };
    float a[N * N], b[N * N], c[N * N];
    struct bw_buffer *buffers[3];
    for (int i = 0; i < 3; i++) {
        buffers[i] = rig_buffer(rig, device, BYTES, 0);
        if (!buffers[i])
            return;
    }
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)(i % 7 - 3);
        b[i] = (float)(i % 11 - 5);
    }
    struct bw_argument arguments[] = {
        argument_range(range_all(buffers[0]), BW_ACCESS_WRITE),
        argument_range(range_all(buffers[1]), BW_ACCESS_READ),
        argument_range(range_all(buffers[2]), BW_ACCESS_READ),
        argument_value(N),
    };
    BW_OK(bw_buffer_write(buffers[1], 0, a, BYTES, &rig->err), &rig->err);
    BW_OK(bw_buffer_write(buffers[2], 0, b, BYTES, &rig->err), &rig->err);
    BW_OK(run_groups(rig, device, "matmul", N, 32, arguments, 4), &rig->err);
    BW_OK(bw_buffer_read(buffers[0], 0, c, BYTES, &rig->err), &rig->err);
    for (int row = 0; row < N; row++) {
        for (int column = 0; column < N; column++) {
            float sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[row * N + k] * b[k * N + column];
            if (c[row * N + column] != sum && !BW_NEAR(c[row * N + column], sum, 0))
                row = column = N;
        }
    }
    for (int i = 0; i < 3; i++)
        bw_buffer_destroy(buffers[i]);
}

static inline void mix_works(struct rig *rig, uint32_t device)
{
    enum { BYTES = 1000 };
    uint8_t target[BYTES], source[BYTES], got[BYTES];
    struct bw_buffer *a = rig_buffer(rig, device, BYTES, 0), *b = rig_buffer(rig, device, BYTES, 0);
    if (!a || !b)
        return;
    for (int i = 0; i < BYTES; i++) {
        target[i] = (uint8_t)(i * 3);
        source[i] = (uint8_t)(i + 50);
    }
    struct bw_argument arguments[] = {argument_range(range_all(a), BW_ACCESS_READ | BW_ACCESS_WRITE),
                                      argument_range(range_all(b), BW_ACCESS_READ), argument_value(BYTES),
                                      argument_value(BYTES), argument_value(9)};
    BW_OK(bw_buffer_write(a, 0, target, BYTES, &rig->err), &rig->err);
    BW_OK(bw_buffer_write(b, 0, source, BYTES, &rig->err), &rig->err);
    BW_OK(run(rig, device, "mix", arguments, 5), &rig->err);
    BW_OK(bw_buffer_read(a, 0, got, BYTES, &rig->err), &rig->err);
    mix_run(target, BYTES, source, BYTES, 9);
    BW_BYTES(got, target, BYTES);
    bw_buffer_destroy(a);
    bw_buffer_destroy(b);
}

#endif
