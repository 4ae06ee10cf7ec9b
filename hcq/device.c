/* Devices: what hcq keeps beside a driver's, health, recovery. Names are open.c's business. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hcq/hcq.h"

enum {
    CACHED_VRAM_SHARE = 4
}; /* freed blocks may keep a quarter of VRAM: a model's activations, with room for another process */

struct bw_hcq_device *bw_hcq_device_at(const struct bw_ctx *ctx, uint32_t index)
{
    assert(index < BW_HCQ_DEVICES_MAX);
    return __atomic_load_n(&ctx->devices[index], __ATOMIC_ACQUIRE);
}

static int index_take(struct bw_hcq_device *device, struct bw_err *err)
{
    struct bw_ctx *ctx = device->ctx;
    uint32_t index = 0;
    pthread_mutex_lock(&ctx->lock);
    while (index < BW_HCQ_DEVICES_MAX && ctx->devices[index])
        index++;
    if (index < BW_HCQ_DEVICES_MAX) {
        device->index = index;
        __atomic_store_n(&ctx->devices[index], device, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&ctx->lock);
    if (index == BW_HCQ_DEVICES_MAX)
        return bw_fail(err, -EMFILE, "hcq", "more than %d devices in one context", BW_HCQ_DEVICES_MAX);
    return 0;
}

/* Nobody finds the device any more, and its engines stop, whatever they do. Later holders of its index start
 * clean: nobody uses their memory, and nothing of theirs was mapped. */
static void index_give(struct bw_hcq_device *device)
{
    struct bw_ctx *ctx = device->ctx;
    pthread_mutex_lock(&ctx->lock);
    __atomic_fetch_and(&ctx->failed, ~(1ull << device->index), __ATOMIC_RELEASE);
    __atomic_store_n(&ctx->devices[device->index], NULL, __ATOMIC_RELEASE);
    bw_hcq_queues_stop(device); /* before what they may still write to is reused */
    for (uint32_t i = 0; i < BW_HCQ_DEVICES_MAX; i++) {
        struct bw_hcq_device *other = ctx->devices[i];
        if (!other)
            continue;
        __atomic_fetch_and(&other->follows, ~(1ull << device->index), __ATOMIC_RELAXED);
        for (uint32_t k = 0; k < other->queue_count; k++)
            __atomic_fetch_and(&other->queues[k].depends_on, ~(1ull << device->index), __ATOMIC_RELAXED);
        bw_hcq_memory_forget(other, device);
    }
    pthread_mutex_unlock(&ctx->lock);
    bw_hcq_peers_forget(device);
}

static void device_free(struct bw_hcq_device *device)
{
    struct bw_ctx *ctx = device->ctx;
    struct bw_machine *machine = device->machine;
    device->device->ops->close(device->device);
    bw_interval_map_free(&device->live);
    bw_reuse_free(&device->reuse);
    pthread_mutex_destroy(&device->lock);
    pthread_mutex_destroy(&device->transfer_lock);
    free(device);
    bw_machine_release(ctx, machine);
}

int bw_hcq_device_attach(struct bw_ctx *ctx, struct bw_device *device, struct bw_sys *sys,
                         struct bw_machine *machine, struct bw_err *err)
{
    struct bw_hcq_device *hcq = calloc(1, sizeof *hcq);
    if (!hcq) {
        device->ops->close(device);
        bw_machine_release(ctx, machine);
        return bw_fail(err, -ENOMEM, "hcq", "device %s", device->info.name);
    }
    hcq->device = device;
    hcq->ctx = ctx;
    hcq->sys = sys;
    hcq->machine = machine;
    pthread_mutex_init(&hcq->lock, NULL);
    pthread_mutex_init(&hcq->transfer_lock, NULL);
    uint64_t vram_share_bytes = device->info.vram_bytes / CACHED_VRAM_SHARE;
    hcq->reuse =
        (struct bw_reuse){.limit_bytes = vram_share_bytes ? vram_share_bytes : BW_HCQ_CACHED_BYTES_MAX,
                          .release = bw_hcq_block_free};
    hcq->retiring_end = &hcq->retiring;
    device->hcq = hcq;
    device->describer = (struct bw_address_describer){bw_hcq_describe, hcq};
    int rc = index_take(hcq, err);
    if (rc) {
        device_free(hcq);
        return rc;
    }
    rc = bw_hcq_queues_create(hcq, err);
    if (rc)
        bw_device_close(device);
    return rc;
}

/* Others poll its signals, whose memory is about to go, until they have seen them. Whom the kernel makes wait
 * for one that failed goes on once its queues are gone. */
static void dependents_wait(const struct bw_hcq_device *device)
{
    bool kernel_lets_go = bw_hcq_device_failed(device) && device->device->caps.submit_wait;
    for (uint32_t i = 0; i < BW_HCQ_DEVICES_MAX; i++) {
        struct bw_hcq_device *other = bw_hcq_device_at(device->ctx, i);
        if (other && kernel_lets_go && other->device->caps.submit_wait)
            continue;
        for (uint32_t k = 0; other && other != device && k < other->queue_count; k++) {
            struct bw_hcq_queue *queue = &other->queues[k];
            if (__atomic_load_n(&queue->depends_on, __ATOMIC_ACQUIRE) >> device->index & 1)
                (void)bw_hcq_queue_wait(queue, queue->depends_until, NULL); /* then it is broken, too */
        }
    }
}

void bw_device_close(struct bw_device *device)
{
    if (!device)
        return;
    struct bw_hcq_device *hcq = bw_hcq_device_of(device);
    struct bw_ctx *ctx = hcq->ctx;
    if (bw_ctx_forked(
            ctx)) { /* queues, threads and mappings are the parent's; what is left goes with the process */
        __atomic_store_n(&ctx->devices[hcq->index], NULL, __ATOMIC_RELEASE);
        return;
    }
    (void)bw_hcq_devices_wait(ctx, 1ull << hcq->index, NULL);
    dependents_wait(hcq);
    bw_hcq_transfer_destroy(hcq);
    bw_block_release(hcq->file);
    index_give(hcq);
    bw_hcq_queues_forget(hcq);
    bw_hcq_programs_release(hcq);
    bw_hcq_cache_flush(hcq, true);
    assert(hcq->live.count == 0); /* buffers must be gone */
    device_free(hcq);
}

const struct bw_device_info *bw_device_info(const struct bw_device *device)
{
    return &device->info;
}

struct bw_ctx *bw_device_ctx(const struct bw_device *device)
{
    return device->ctx;
}

int bw_hcq_device_check(struct bw_hcq_device *device, struct bw_err *err)
{
    if (bw_ctx_forked(device->ctx)) {
        bw_fail(err, -ECHILD, "hcq", "device opened before fork");
        bw_err_device(err, device->device->info.name);
        bw_err_hint(err, "a child process opens its own context and devices");
        return -ECHILD;
    }
    if (bw_hcq_device_failed(device)) {
        if (err)
            *err = device->error;
        return device->error.code;
    }
    return 0;
}

/* What is not done by now does not count as done when it is settled. */
static void undone_note(struct bw_hcq_device *device)
{
    device->dependents = 0;
    for (uint32_t i = 0; i < BW_HCQ_DEVICES_MAX; i++) {
        const struct bw_hcq_device *other = bw_hcq_device_at(device->ctx, i);
        if (other && bw_hcq_dependencies(other) >> device->index & 1)
            device->dependents |= 1ull << i;
        for (uint32_t k = 0; other && k < other->queue_count; k++)
            device->undone[i][k] = (struct bw_hcq_undone){bw_hcq_queue_now(&other->queues[k]),
                                                          bw_hcq_queue_submitted(&other->queues[k])};
    }
}

void bw_hcq_timelines_settle(struct bw_hcq_device *device)
{
    assert(bw_hcq_device_failed(device));
    for (uint32_t i = 0; i < device->queue_count; i++) {
        struct bw_hcq_queue *queue = &device->queues[i];
        __atomic_store_n(__atomic_load_n(&queue->signal, __ATOMIC_ACQUIRE),
                         bw_hcq_queue_submitted(queue).value, __ATOMIC_RELEASE);
    }
}

int bw_hcq_device_fail(struct bw_hcq_device *device, struct bw_err *err)
{
    assert(err && err->code < 0);
    pthread_mutex_lock(&device->lock);
    if (!bw_hcq_device_failed(device)) {
        if (!err->device[0])
            bw_err_device(err, device->device->info.name);
        device->error = *err;
        undone_note(device);
        __atomic_store_n(&device->failed, 1, __ATOMIC_RELEASE); /* before a settled signal is seen */
        __atomic_fetch_or(&device->ctx->failed, 1ull << device->index, __ATOMIC_RELEASE);
        bw_hcq_timelines_settle(device);
    }
    *err = device->error;
    pthread_mutex_unlock(&device->lock);
    return err->code;
}

int bw_device_recover(struct bw_device *device, struct bw_err *err)
{
    struct bw_hcq_device *hcq = bw_hcq_device_of(device);
    if (bw_ctx_forked(hcq->ctx))
        return bw_hcq_device_check(hcq, err);
    if (!bw_hcq_device_failed(hcq))
        return 0;
    if (!device->ops->reset)
        return bw_fail(err, -ENOTSUP, "hcq", "%s cannot be reset", device->info.name);
    int rc = device->ops->reset(device, err);
    if (rc)
        return rc;
    __atomic_fetch_add(&hcq->ctx->queues_epoch, 1, __ATOMIC_RELEASE);
    bw_hcq_losses_note(hcq);
    bw_hcq_timelines_settle(hcq);
    for (uint32_t i = 0; i < hcq->queue_count; i++)
        hcq->queues[i].code_epoch = 0;
    bw_hcq_programs_release(hcq);
    __atomic_fetch_and(&hcq->ctx->failed, ~(1ull << hcq->index), __ATOMIC_RELEASE);
    __atomic_store_n(&hcq->failed, 0, __ATOMIC_RELEASE);
    return 0;
}

int bw_device_synchronize(struct bw_device *device, struct bw_err *err)
{
    struct bw_hcq_device *hcq = bw_hcq_device_of(device);
    int rc = bw_hcq_device_check(hcq, err);
    return rc ? rc : bw_hcq_devices_wait(hcq->ctx, 1ull << hcq->index, err);
}
