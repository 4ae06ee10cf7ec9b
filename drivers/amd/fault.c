/* What broke, in words: the interface says where, the command buffers that were submitted last say what may
 * have run. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/amd/device.h"
#include "drivers/amd/pm4.h"
#include "drivers/amd/regs.h"

enum { SUSPECTS_MAX = 3 }; /* kernels named in one error */

static const char subsystem[] = "amd";

struct suspects {
    const struct bw_amd_kernel *kernels[SUSPECTS_MAX];
    uint32_t count, more;
    const struct bw_amd_queue *queue;
};

/* The CPU's view of `size_bytes` at a device address; false when no allocation of ours covers it.
 * device->lock is held. */
static bool cpu_view(const struct bw_amd_device *device, uint64_t va, uint64_t size_bytes,
                     const struct bw_region **region, uint64_t *offset)
{
    for (const struct bw_amd_memory *m = device->memories; m; m = m->next) {
        uint64_t inside = va - m->iface.gpu_va;
        if (va < m->iface.gpu_va || inside >= m->iface.cpu.size_bytes ||
            size_bytes > m->iface.cpu.size_bytes - inside)
            continue;
        *region = &m->iface.cpu;
        *offset = inside;
        return true;
    }
    return false;
}

static const struct bw_amd_kernel *kernel_at(const struct bw_amd_device *device, uint64_t entry_va)
{
    for (const struct bw_amd_program *program = device->programs; program; program = program->next)
        for (uint32_t i = 0; i < program->kernel_count; i++)
            if (program->kernels[i].entry_va == entry_va)
                return &program->kernels[i];
    return NULL;
}

static void suspect_add(struct suspects *suspects, const struct bw_amd_queue *queue,
                        const struct bw_amd_kernel *kernel)
{
    for (uint32_t i = 0; i < suspects->count; i++)
        if (suspects->kernels[i] == kernel)
            return;
    suspects->queue = queue;
    if (suspects->count < SUSPECTS_MAX)
        suspects->kernels[suspects->count++] = kernel;
    else
        suspects->more++;
}

/* Whether a signal of a command buffer has arrived: then everything before it is done. */
static bool signal_arrived(const struct bw_amd_device *device, const uint32_t *words)
{
    const struct bw_region *region;
    uint64_t offset, va = words[3] | (uint64_t)words[4] << 32, value = words[5] | (uint64_t)words[6] << 32;
    if (bw_amd_bits_unpack(BW_AMD_PM4_RELEASE_MEM_DATA_SEL, words[2]) != BW_AMD_RELEASE_DATA_64 || va % 8 ||
        va == device->mailbox_va || !cpu_view(device, va, 8, &region, &offset))
        return false;
    return (int64_t)(bw_amd_load64(region, offset) - value) >= 0;
}

struct walk {
    uint64_t program; /* COMPUTE_PGM as last set, bytes */
    struct suspects found;
};

static void walk_packet(const struct bw_amd_device *device, const struct bw_amd_queue *queue,
                        const struct bw_amd_decoded *decoded, const uint32_t *words, struct walk *walk)
{
    switch (decoded->packet->opcode) {
    case BW_AMD_PM4_OP_SET_SH_REG:
        if (words[1] == BW_AMD_COMPUTE_PGM_LO - BW_AMD_PM4_SH_REG_FIRST && decoded->tail_count >= 2)
            walk->program = (words[2] | (uint64_t)words[3] << 32) << 8;
        break;
    case BW_AMD_PM4_OP_DISPATCH_DIRECT: {
        const struct bw_amd_kernel *kernel = kernel_at(device, walk->program);
        if (kernel)
            suspect_add(&walk->found, queue, kernel);
        break;
    }
    case BW_AMD_PM4_OP_RELEASE_MEM:
        if (signal_arrived(device, words))
            memset(&walk->found, 0, sizeof walk->found);
        break;
    default:
        break;
    }
}

static void walk_commands(const struct bw_amd_device *device, const struct bw_amd_queue *queue, uint64_t va,
                          uint32_t word_count, struct walk *walk)
{
    const struct bw_region *region;
    uint64_t offset, length;
    if (!cpu_view(device, va, (uint64_t)word_count * 4, &region, &offset))
        return;
    for (uint64_t at = 0; at < word_count; at += length) {
        uint32_t words[BW_AMD_EMIT_WORDS_MAX];
        uint64_t left = word_count - at, count = left < BW_AMD_EMIT_WORDS_MAX ? left : BW_AMD_EMIT_WORDS_MAX;
        for (uint64_t i = 0; i < count; i++)
            words[i] = bw_rd32(region, offset + (at + i) * 4);
        struct bw_amd_decoded decoded;
        bw_amd_pm4_decode(device->pm4, words, count, &decoded);
        length = decoded.word_count;
        if (decoded.packet && length <= count)
            walk_packet(device, queue, &decoded, words, walk);
    }
}

/* Kernels of the last command buffers of each compute queue that no arrived signal proves done. */
static void find_suspects(const struct bw_amd_device *device, struct suspects *suspects)
{
    for (const struct bw_amd_queue *queue = device->queues; queue; queue = queue->next) {
        if (queue->base.kind != BW_QUEUE_COMPUTE)
            continue;
        uint64_t count = atomic_load(&queue->submit_count);
        uint64_t first = count > BW_AMD_RECENT_SUBMITS ? count - BW_AMD_RECENT_SUBMITS : 0;
        struct walk walk = {0};
        for (uint64_t i = first; i < count; i++) {
            const struct bw_amd_submit *submit = &queue->recent[i % BW_AMD_RECENT_SUBMITS];
            walk_commands(device, queue, atomic_load(&submit->address), atomic_load(&submit->word_count),
                          &walk);
        }
        for (uint32_t i = 0; i < walk.found.count; i++)
            suspect_add(suspects, queue, walk.found.kernels[i]);
        suspects->more += walk.found.more;
    }
}

static void suspects_text(const struct suspects *suspects, char *text, size_t size)
{
    size_t length = 0;
    text[0] = 0;
    if (suspects->count == 0)
        return;
    length += (size_t)snprintf(text, size, "compute queue %u, kernel ", suspects->queue->base.index);
    for (uint32_t i = 0; i < suspects->count && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? " or " : "",
                                   suspects->kernels[i]->base.info.name);
    if (suspects->more && length < size)
        snprintf(text + length, size - length, " or %u more", suspects->more);
}

static void describe_fault(struct bw_amd_device *device, const struct bw_fault *fault, struct bw_err *err)
{
    char where[96], nearest[96] = "";
    struct suspects suspects = {0};
    find_suspects(device, &suspects);
    suspects_text(&suspects, where, sizeof where);
    if (fault->kind == BW_FAULT_MEMORY) {
        bw_fail(err, -EIO, subsystem, "%s%smemory fault at 0x%" PRIx64 " (%s%s)", where, where[0] ? ": " : "",
                fault->va,
                fault->not_present  ? "not mapped"
                : fault->read_only  ? "read only"
                : fault->no_execute ? "not executable"
                                    : "no reason given",
                fault->imprecise ? ", imprecise" : "");
        if (device->base.describer.describe)
            device->base.describer.describe(device->base.describer.user, fault->va, nearest, sizeof nearest);
        bw_err_observed(err, "%s", nearest);
    } else {
        const char *what = fault->kind == BW_FAULT_LOST ? "the device is gone" : "hardware exception";
        bw_fail(err, -EIO, subsystem, "%s%s%s", where, where[0] ? ": " : "",
                fault->text[0] ? fault->text : what);
        bw_err_observed(err, "reset type %u, cause %u", fault->reset_type, fault->reset_cause);
    }
    if (fault->kind == BW_FAULT_MEMORY && fault->text[0])
        bw_err_hint(err, "%s", fault->text);
    bw_err_device(err, device->base.info.name);
}

int bw_amd_query_fault(struct bw_device *base, struct bw_err *err)
{
    struct bw_amd_device *device = bw_amd_device(base);
    pthread_mutex_lock(&device->lock);
    int rc = 0;
    if (!device->fault.code) {
        struct bw_fault fault = {0};
        struct bw_err query = {0};
        rc = device->iface->ops->query_fault(device->iface, &fault, &query);
        if (rc)
            device->fault = query;
        else if (fault.kind != BW_FAULT_NONE)
            describe_fault(device, &fault, &device->fault);
    }
    if (device->fault.code) {
        rc = -EIO;
        if (err)
            *err = device->fault;
    }
    pthread_mutex_unlock(&device->lock);
    return rc;
}

int bw_amd_reset(struct bw_device *base, struct bw_err *err)
{
    struct bw_amd_device *device = bw_amd_device(base);
    pthread_mutex_lock(&device->lock);
    int rc = 0;
    for (struct bw_amd_queue *queue = device->queues; queue && !rc; queue = queue->next)
        rc = bw_amd_queue_rebuild(queue, err);
    if (!rc && device->upload_queue)
        rc = bw_amd_queue_rebuild(device->upload_queue, err);
    struct bw_fault fault;
    if (!rc) {
        /* What was reported belongs to the queues that are gone. */
        device->iface->ops->query_fault(device->iface, &fault, NULL);
        memset(&device->fault, 0, sizeof device->fault);
    }
    pthread_mutex_unlock(&device->lock);
    return rc;
}
