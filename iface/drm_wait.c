/* Waiting for submissions, and what broke. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "iface/drm.h"

enum {
    WAITED_MAX = 32, /* queues that one wait looks at: more than a driver makes */
};

/* With nothing of ours under way, what a caller waits for comes from elsewhere: it looks again this often. */
#define IDLE_WAIT_NS 1000000ull

/* GCVM_L2_PROTECTION_FAULT_STATUS of gc_11_0_0_sh_mask.h; what the bits of PERMISSION_FAULTS mean is seen in
 * the kernel's own messages: not valid, no reading, no writing, no execution. */
enum {
    STATUS_NOT_VALID = 1 << 4,
    STATUS_NO_WRITE = 1 << 6,
    STATUS_NO_EXECUTE = 1 << 7,
};

/* The kernel writes it, into plain memory. */
static uint64_t done_of(const struct bw_drm_queue *queue)
{
    assert(queue->page.cpu.base && !queue->page.cpu.ops);
    return __atomic_load_n((const volatile uint64_t *)queue->page.cpu.base, __ATOMIC_ACQUIRE);
}

/* For each queue with work under way the next submission that will be done. */
static uint32_t collect(struct bw_drm_iface *drm, struct drm_amdgpu_fence fences[WAITED_MAX])
{
    uint32_t count = 0;
    pthread_mutex_lock(&drm->lock);
    for (struct bw_drm_queue *queue = drm->queues; queue && count < WAITED_MAX; queue = queue->next) {
        uint64_t done = done_of(queue);
        if (done >= atomic_load_explicit(&queue->submitted, memory_order_acquire))
            continue;
        fences[count++] = (struct drm_amdgpu_fence){
            .ctx_id = queue->context_id, .ip_type = queue->ip_type, .seq_no = done + 1};
    }
    pthread_mutex_unlock(&drm->lock);
    return count;
}

static void idle(struct bw_sys *sys, uint64_t timeout_ns)
{
    sys->ops->sleep_ns(sys, timeout_ns < IDLE_WAIT_NS ? timeout_ns : IDLE_WAIT_NS);
}

int bw_drm_wait_interrupt(struct bw_iface *iface, uint64_t timeout_ns, struct bw_err *err)
{
    struct bw_drm_iface *drm = bw_drm_of(iface);
    struct bw_sys *sys = iface->sys;
    struct drm_amdgpu_fence fences[WAITED_MAX];
    int rc = bw_drm_check_fork(drm, err);
    if (rc)
        return rc;
    uint64_t now_ns = sys->ops->clock_ns(sys);
    uint64_t until_ns = timeout_ns < INT64_MAX - now_ns ? now_ns + timeout_ns : INT64_MAX;
    uint32_t count = collect(drm, fences);
    if (!count) {
        idle(sys, timeout_ns);
        return timeout_ns > IDLE_WAIT_NS;
    }
    for (;;) {
        union drm_amdgpu_wait_fences args = {
            .in = {.fences = (uint64_t)(uintptr_t)fences, .fence_count = count, .timeout_ns = until_ns}};
        rc = sys->ops->ioctl(sys, drm->fd, DRM_IOCTL_AMDGPU_WAIT_FENCES, &args);
        if (rc >= 0)
            return args.out.status != 0;
        if (rc != -EINTR || sys->ops->clock_ns(sys) >= until_ns)
            break;
    }
    if (rc == -EINTR)
        return 0;
    if (rc == -ENODEV || rc == -EIO || rc == -ENOMEM || rc == -EFAULT)
        return bw_fail(err, rc, "drm", "WAIT_FENCES of %s", iface->properties.node_name);
    /* One of them failed, and says so by its error, or its queue is gone: something has happened. As it will
     * be said again at once, not too often. */
    idle(sys, timeout_ns);
    return 1;
}

void bw_drm_interrupt_target(struct bw_iface *iface, uint64_t *mailbox_va, uint32_t *event_id)
{
    *mailbox_va = 0; /* the kernel interrupts for its own fences, after each submission */
    *event_id = 0;
}

static void describe_memory(const struct bw_drm_gpuvm_fault *found, struct bw_fault *fault)
{
    bool not_valid = found->status & STATUS_NOT_VALID;
    *fault = (struct bw_fault){
        .kind = BW_FAULT_MEMORY,
        .va = bw_align_down(found->address, BW_DRM_PAGE_BYTES),
        .not_present = not_valid,
        .read_only = !not_valid && found->status & STATUS_NO_WRITE,
        .no_execute = !not_valid && found->status & STATUS_NO_EXECUTE,
    };
    snprintf(fault->text, sizeof fault->text, "memory fault at 0x%" PRIx64 ", status 0x%x", fault->va,
             found->status);
}

/* 0 or -errno; *found says whether a fault came since the last look. drm->lock is held. */
static int look_for_memory_fault(struct bw_drm_iface *drm, struct bw_fault *fault, bool *found)
{
    struct drm_amdgpu_info request = {.query = BW_DRM_INFO_GPUVM_FAULT};
    struct bw_drm_gpuvm_fault now;
    *found = false;
    if (drm->minor_version < BW_DRM_MINOR_GPUVM_FAULT)
        return 0;
    int rc = bw_drm_info(drm, &request, &now, sizeof now);
    if (rc < 0)
        return rc;
    *found = memcmp(&now, &drm->fault, sizeof now) != 0;
    drm->fault = now;
    if (*found)
        describe_memory(&now, fault);
    return 0;
}

static int look_at_queue(struct bw_drm_iface *drm, struct bw_drm_queue *queue, struct bw_fault *fault,
                         bool *found)
{
    union drm_amdgpu_ctx args = {.in = {.op = AMDGPU_CTX_OP_QUERY_STATE2, .ctx_id = queue->context_id}};
    int rc = bw_drm_ioctl(drm, DRM_IOCTL_AMDGPU_CTX, &args);
    if (rc < 0)
        return rc;
    uint64_t flags = args.out.state.flags;
    *found = flags & (AMDGPU_CTX_QUERY2_FLAGS_RESET | AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST |
                      AMDGPU_CTX_QUERY2_FLAGS_GUILTY);
    if (!*found)
        return 0;
    queue->told = true;
    bool lost = flags & AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST;
    *fault = (struct bw_fault){.kind = BW_FAULT_HARDWARE, .reset_type = !lost};
    snprintf(fault->text, sizeof fault->text, "hardware exception: GPU reset, since %s%s",
             flags & AMDGPU_CTX_QUERY2_FLAGS_GUILTY ? "work of this queue hung or was refused"
                                                    : "work of somebody else hung",
             lost ? "; VRAM contents lost" : "");
    /* The kernel does not clear it, and the same once more looks like none. */
    size_t length = strlen(fault->text);
    if (drm->fault.address || drm->fault.status)
        snprintf(fault->text + length, sizeof fault->text - length,
                 "; the last memory fault, at 0x%" PRIx64 "%s, may be why", drm->fault.address,
                 drm->fault.status & STATUS_NOT_VALID ? " (not mapped)" : "");
    return 0;
}

int bw_drm_query_fault(struct bw_iface *iface, struct bw_fault *fault, struct bw_err *err)
{
    struct bw_drm_iface *drm = bw_drm_of(iface);
    bool found = false;
    memset(fault, 0, sizeof *fault);
    int rc = bw_drm_check_fork(drm, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&drm->lock);
    rc = look_for_memory_fault(drm, fault, &found);
    for (struct bw_drm_queue *queue = drm->queues; queue && !rc && !found; queue = queue->next) {
        if (!queue->told)
            rc = look_at_queue(drm, queue, fault, &found);
    }
    bool newer = false; /* a fault between the two looks is what the reset came of */
    if (!rc && found && fault->kind == BW_FAULT_HARDWARE)
        rc = look_for_memory_fault(drm, fault, &newer);
    pthread_mutex_unlock(&drm->lock);
    if (rc == -ENODEV || rc == -EIO) {
        fault->kind = BW_FAULT_LOST;
        snprintf(fault->text, sizeof fault->text,
                 "the GPU is gone: the kernel driver no longer answers for it");
        rc = 0;
    }
    return rc ? bw_fail(err, rc, "drm", "state of %s", iface->properties.node_name) : 0;
}
