/* A machine of mock GPUs, each with what it sends and what it receives. */
#ifndef BW_TESTS_SCENARIO_BOX_H
#define BW_TESTS_SCENARIO_BOX_H

#include <bellwire/graph.h>
#include <bellwire/mock.h>

#include "tests/check.h"

enum { GPUS_MAX = 8 };

struct box {
    struct bw_sys *sys;
    struct bw_ctx *ctx;
    uint32_t gpus;
    struct bw_device *devices[GPUS_MAX];
    struct bw_buffer *out[GPUS_MAX], *in[GPUS_MAX]; /* part i of out[d] goes to part d of in[i] */
    struct bw_err err;
};

/* mock: how many GPUs, and what else is special about it; bytes: of each buffer; wait_ns: 0 for the default;
 * faults end with NULL. */
static inline bool box_open(struct box *box, struct bw_mock_config mock, uint64_t bytes, uint64_t wait_ns,
                            const char *const *faults)
{
    mock.size = sizeof mock;
    mock.arch = "gfx1100";
    mock.cu_count = 2;
    mock.threads = 1;
    *box = (struct box){.gpus = mock.gpu_count};
    bool ok = BW_OK(bw_mock_kfd_create(&mock, &box->sys, &box->err), &box->err);
    for (; *faults && ok; faults++)
        ok = BW_OK(bw_mock_fault_add(box->sys, *faults, &box->err), &box->err);
    struct bw_ctx_config config = {.size = sizeof config, .sys = box->sys, .wait_ns = wait_ns};
    ok = ok && BW_OK(bw_ctx_create(&config, &box->ctx, &box->err), &box->err);
    for (uint32_t i = 0; i < box->gpus && ok; i++) {
        char name[32];
        snprintf(name, sizeof name, "kfd+amd:%u", i);
        ok = BW_OK(bw_device_open(box->ctx, name, &box->devices[i], &box->err), &box->err) &&
             BW_OK(bw_buffer_create(box->devices[i], bytes, 0, &box->out[i], &box->err), &box->err) &&
             BW_OK(bw_buffer_create(box->devices[i], bytes, 0, &box->in[i], &box->err), &box->err);
    }
    return ok;
}

static inline void box_close(struct box *box)
{
    for (uint32_t i = 0; i < box->gpus; i++) {
        bw_buffer_destroy(box->out[i]);
        bw_buffer_destroy(box->in[i]);
    }
    for (uint32_t i = 0; i < box->gpus; i++)
        bw_device_close(box->devices[i]);
    bw_ctx_destroy(box->ctx);
    bw_sys_destroy(box->sys);
}

#endif
