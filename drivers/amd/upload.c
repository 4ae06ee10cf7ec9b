/* Small synchronous copies to device memory, for machine code: through host memory and a copy queue of the
 * driver's own, so that no CPU mapping of VRAM (and no flush of its write path) is needed. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "drivers/amd/device.h"
#include "drivers/amd/sdma.h"

enum {
    UPLOAD_CHUNK_BYTES = 256 << 10, /* kernels are smaller; a large library takes a few rounds */
    UPLOAD_COMMAND_BYTES = 4096,    /* one copy and one fence, 64 words at most */
    UPLOAD_SIGNAL_OFFSET = UPLOAD_CHUNK_BYTES + UPLOAD_COMMAND_BYTES,
    UPLOAD_MEMORY_BYTES = UPLOAD_SIGNAL_OFFSET + 4096,
    UPLOAD_SPINS = 2000, /* reads of the signal before sleeping; a chunk takes some 20 us of PCIe */
    UPLOAD_SLEEP_NS = 1000000,
};

static const char subsystem[] = "amd";

static int upload_memory_open(struct bw_amd_device *device, struct bw_err *err)
{
    struct bw_iface_memory memory;
    if (device->upload_memory.size_bytes)
        return 0;
    int rc = device->iface->ops->alloc(device->iface, UPLOAD_MEMORY_BYTES, BW_IFACE_HOST | BW_IFACE_UNCACHED,
                                       0, &memory, err);
    if (rc)
        return rc;
    for (uint64_t at = 0; at < UPLOAD_MEMORY_BYTES; at += 8)
        bw_wr64(&memory.cpu, at, 0);
    pthread_mutex_lock(&device->lock);
    device->upload_memory = memory;
    pthread_mutex_unlock(&device->lock);
    return 0;
}

static int upload_open(struct bw_amd_device *device, struct bw_err *err)
{
    struct bw_amd_queue *queue;
    int rc = upload_memory_open(device, err);
    if (rc || device->upload_queue)
        return rc;
    rc = bw_amd_queue_open(device, BW_QUEUE_COPY, BW_AMD_COPY_QUEUES_MAX, &queue, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&device->lock);
    device->upload_queue = queue;
    pthread_mutex_unlock(&device->lock);
    return 0;
}

static uint64_t signal_read(const struct bw_amd_device *device)
{
    return bw_amd_load64(&device->upload_memory.cpu, UPLOAD_SIGNAL_OFFSET);
}

/* Nothing moves any more: the device is broken until it is reset. */
static int upload_timed_out(struct bw_amd_device *device, uint64_t elapsed_ns, struct bw_err *err)
{
    struct bw_err failure;
    struct bw_queue_view view;
    bw_fail(&failure, -ETIMEDOUT, subsystem, "upload queue: machine code to 0x%" PRIx64, device->upload_va);
    bw_err_device(&failure, device->base.info.name);
    bw_err_expected(&failure, "signal 0x%" PRIx64, device->upload_value);
    bw_err_observed(&failure, "signal 0x%" PRIx64 ", nothing moves any more", signal_read(device));
    failure.elapsed_ns = elapsed_ns;
    if (!bw_amd_queue_look(&device->upload_queue->base, &view))
        bw_err_hint(&failure, "%s", view.text);
    if (err)
        *err = failure;
    bw_amd_fault_keep(device, &failure);
    return -ETIMEDOUT;
}

static int upload_wait(struct bw_amd_device *device, struct bw_err *err)
{
    struct bw_sys *sys = device->iface->sys;
    struct bw_queue *queue = &device->upload_queue->base;
    for (int i = 0; i < UPLOAD_SPINS; i++)
        if (signal_read(device) == device->upload_value)
            return 0;
    uint64_t moved_ns = sys->ops->clock_ns(sys), progress = bw_amd_queue_progress(queue);
    while (signal_read(device) != device->upload_value) {
        int rc = device->iface->ops->wait_interrupt(device->iface, UPLOAD_SLEEP_NS, err);
        rc = rc < 0 ? rc : bw_amd_query_fault(&device->base, err);
        if (rc < 0)
            return rc;
        uint64_t now_ns = sys->ops->clock_ns(sys), progress_now = bw_amd_queue_progress(queue);
        moved_ns = progress_now != progress ? now_ns : moved_ns;
        progress = progress_now;
        if (now_ns - moved_ns >= device->wait_ns && signal_read(device) != device->upload_value)
            return upload_timed_out(device, now_ns - moved_ns, err);
    }
    return 0;
}

static int upload_chunk(struct bw_amd_device *device, uint64_t target_va, const uint8_t *data,
                        uint64_t size_bytes, struct bw_err *err)
{
    const struct bw_iface_memory *memory = &device->upload_memory;
    struct bw_queue *queue = &device->upload_queue->base;
    uint64_t done_bytes;
    device->upload_va = target_va;
    for (uint64_t at = 0; at < size_bytes; at += 4) {
        uint32_t word = 0;
        memcpy(&word, data + at, size_bytes - at < 4 ? (size_t)(size_bytes - at) : 4);
        bw_wr32(&memory->cpu, at, word);
    }
    struct bw_encoder encoder = {0};
    bw_amd_encode_copy(queue, &encoder, bw_operand_constant(target_va), bw_operand_constant(memory->gpu_va),
                       size_bytes, &done_bytes);
    bw_amd_encode_signal(queue, &encoder, bw_operand_constant(memory->gpu_va + UPLOAD_SIGNAL_OFFSET),
                         bw_operand_constant(++device->upload_value), true);
    bw_amd_encode_end(queue, &encoder);
    int rc = encoder.failed;
    if (!rc) {
        assert(done_bytes == size_bytes && encoder.count * 4 <= UPLOAD_COMMAND_BYTES);
        for (uint32_t i = 0; i < encoder.count; i++)
            bw_wr32(&memory->cpu, UPLOAD_CHUNK_BYTES + i * 4, encoder.words[i]);
        rc = bw_amd_queue_submit(queue, memory->gpu_va + UPLOAD_CHUNK_BYTES, encoder.count);
        rc = rc ? rc : bw_amd_queue_flush(queue);
    }
    bw_encoder_free(&encoder);
    return rc ? bw_fail(err, rc, subsystem, "upload of %" PRIu64 " bytes", size_bytes)
              : upload_wait(device, err);
}

int bw_amd_upload(struct bw_amd_device *device, uint64_t target_va, const void *data, uint64_t size_bytes,
                  struct bw_err *err)
{
    if (device->unfed)
        return 0;
    pthread_mutex_lock(&device->upload_lock);
    int rc = upload_open(device, err);
    for (uint64_t at = 0; !rc && at < size_bytes;) {
        uint64_t take_bytes = size_bytes - at < UPLOAD_CHUNK_BYTES ? size_bytes - at : UPLOAD_CHUNK_BYTES;
        rc = upload_chunk(device, target_va + at, (const uint8_t *)data + at, take_bytes, err);
        at += take_bytes;
    }
    pthread_mutex_unlock(&device->upload_lock);
    return rc;
}

void bw_amd_upload_close(struct bw_amd_device *device)
{
    if (device->upload_queue)
        bw_amd_queue_close(device->upload_queue);
    device->upload_queue = NULL;
    if (device->upload_memory.size_bytes)
        device->iface->ops->free(device->iface, &device->upload_memory, NULL);
}
