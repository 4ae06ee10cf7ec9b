/* A GPU opened through the KFD or DRM interface (tests/way.h) on a mock machine, behind a wrapper that
 * counts, fails calls and finds leaks; and a PM4 queue to make the GPU do something. */
#ifndef BW_TESTS_KFD_FIXTURE_H
#define BW_TESTS_KFD_FIXTURE_H

#include <bellwire/err.h>
#include <bellwire/mock.h>

#include "drivers/amd/pm4.h"
#include "drivers/driver.h"
#include "iface/iface.h"
#include "iface/sys_wrap.h"
#include "tests/check.h"
#include "tests/way.h"

enum { FIXTURE_RING_BYTES = 4096, FIXTURE_WAIT_NS = 1000000000 };

struct kfd_fixture {
    struct bw_sys *mock, *sys; /* sys: the wrapper, what everything goes through */
    struct bw_iface *iface;
};

static inline bool fixture_machine(struct kfd_fixture *f, const char *arch, uint32_t gpus,
                                   uint64_t vram_bytes)
{
    struct bw_mock_config config = {.size = sizeof config,
                                    .arch = arch,
                                    .gpu_count = gpus,
                                    .vram_bytes = vram_bytes,
                                    .threads = 1,
                                    .kfd_absent = WAY_DRM};
    struct bw_err err = {0};
    *f = (struct kfd_fixture){0};
    return BW_OK(bw_mock_kfd_create(&config, &f->mock, &err), &err) &&
           BW_EQ(bw_sys_wrap_create(f->mock, &f->sys), 0);
}

static inline bool fixture_open(struct kfd_fixture *f, const char *arch)
{
    struct bw_err err = {0};
    return fixture_machine(f, arch, 1, 0) && BW_OK(way_open(f->sys, 0, &f->iface, &err), &err);
}

/* Closes everything; nothing may be left open or mapped. */
static inline void fixture_close(struct kfd_fixture *f)
{
    if (f->iface)
        f->iface->ops->close(f->iface);
    bw_sys_wrap_settle(f->sys);
    BW_EQ(bw_sys_wrap_open_descriptors(f->sys), 0);
    BW_EQ(bw_sys_wrap_mapped_bytes(f->sys), 0);
    bw_sys_destroy(f->sys);
    bw_sys_destroy(f->mock);
}

struct pm4_fixture {
    struct bw_iface *iface;
    struct bw_iface_memory ring, pointers;
    struct bw_iface_queue queue;
    uint64_t write_words;
};

static inline int pm4_open(struct pm4_fixture *q, struct bw_iface *iface, struct bw_err *err)
{
    *q = (struct pm4_fixture){.iface = iface};
    int rc = iface->ops->alloc(iface, FIXTURE_RING_BYTES,
                               BW_IFACE_HOST | BW_IFACE_UNCACHED | BW_IFACE_EXECUTABLE, 0, &q->ring, err);
    if (rc)
        return rc;
    rc = iface->ops->alloc(iface, 8, BW_IFACE_HOST | BW_IFACE_UNCACHED, 0, &q->pointers, err);
    struct bw_iface_queue_request request = {
        .kind = BW_IFACE_QUEUE_COMPUTE_PM4,
        .ring = &q->ring,
        .read_pointer_va = q->pointers.gpu_va,
        .write_pointer_va = q->pointers.gpu_va + 64,
        .priority = 7,
    };
    if (!rc)
        rc = iface->ops->queue_create(iface, &request, &q->queue, err);
    return rc;
}

/* Frees what pm4_open made, also when it failed half way. The first failure is returned. */
static inline int pm4_close(struct pm4_fixture *q, struct bw_err *err)
{
    int rc = q->queue.private_data ? q->iface->ops->queue_destroy(q->iface, &q->queue, err) : 0;
    if (rc)
        return rc;
    if (q->pointers.size_bytes)
        rc = q->iface->ops->free(q->iface, &q->pointers, err);
    if (!rc && q->ring.size_bytes)
        rc = q->iface->ops->free(q->iface, &q->ring, err);
    return rc;
}

/* To a kernel: the words at the start of the ring's memory. */
static inline int pm4_hand_over(struct pm4_fixture *q, struct bw_encoder *encoder, struct bw_err *err)
{
    for (uint32_t i = 0; i < encoder->count; i++)
        bw_wr32(&q->ring.cpu, i * 4, encoder->words[i]);
    struct bw_iface_commands commands = {.va = q->ring.gpu_va, .word_count = encoder->count};
    bw_encoder_free(encoder);
    return q->iface->ops->queue_submit(q->iface, &q->queue, &commands, 1, NULL, 0, err);
}

/* Writes the packets to the ring and rings the doorbell, or hands them over. */
static inline int pm4_submit(struct pm4_fixture *q, struct bw_encoder *encoder, struct bw_err *err)
{
    BW_EQ(encoder->failed, 0);
    if (q->iface->ops->queue_submit)
        return pm4_hand_over(q, encoder, err);
    for (uint32_t i = 0; i < encoder->count; i++)
        bw_wr32(&q->ring.cpu, (q->write_words + i) * 4 % FIXTURE_RING_BYTES, encoder->words[i]);
    q->write_words += encoder->count;
    bw_wr64(&q->pointers.cpu, 64, q->write_words);
    bw_store_fence();
    bw_wr64(&q->queue.doorbell, 0, q->write_words);
    bw_encoder_free(encoder);
    return 0;
}

/* Writes value to address, and raises the interface's interrupt. */
static inline int pm4_signal(struct pm4_fixture *q, uint64_t address, uint64_t value, struct bw_err *err)
{
    struct bw_encoder encoder = {0};
    uint64_t mailbox;
    uint32_t event;
    q->iface->ops->interrupt_target(q->iface, &mailbox, &event);
    struct bw_amd_release release = {.data_select = BW_AMD_RELEASE_DATA_64,
                                     .address = bw_operand_constant(address),
                                     .data = bw_operand_constant(value)};
    bw_amd_pm4_release_mem(&encoder, BW_AMD_PM4_GCR, &release);
    release.interrupt_select = BW_AMD_RELEASE_INTERRUPT_AFTER_WRITE;
    release.address = bw_operand_constant(mailbox);
    release.data = bw_operand_constant(event);
    release.interrupt_context = event;
    if (mailbox)
        bw_amd_pm4_release_mem(&encoder, BW_AMD_PM4_GCR, &release);
    return pm4_submit(q, &encoder, err);
}

#endif
