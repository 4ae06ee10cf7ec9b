/* Forwarding struct bw_sys with failures on demand and leak accounting: see sys_wrap.h. */
#include "iface/sys_wrap.h"

#include <assert.h>
#include <drm.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/vec.h"
#include "iface/kfd.h"
#include "mem/interval.h"

struct wrap_sys {
    struct bw_sys base;
    struct bw_sys *inner;
    pthread_mutex_t lock; /* of everything below */
    uint64_t counts[BW_SYS_CALL_COUNT + 1];
    enum bw_sys_call fail_call;
    uint64_t fail_at; /* value of the count that fails, 0: none */
    int fail_error;
    bool fired, kills, dead;
    BW_VEC(int) descriptors;       /* that are open */
    struct bw_interval_map mapped; /* plain memory by address */
    uint64_t hooked_bytes;         /* regions that have no address */
    bool clock_taken;
    uint64_t clock_ns, clock_tick_ns, clock_readings;
};

static struct wrap_sys *wrap_of(const struct bw_sys *sys)
{
    return (struct wrap_sys *)(uintptr_t)sys;
}

/* What the kernel does with the descriptors of a process that is no more. */
static void descriptors_close(struct wrap_sys *wrap)
{
    int fd = -1;
    do {
        pthread_mutex_lock(&wrap->lock);
        fd = wrap->descriptors.count ? wrap->descriptors.data[--wrap->descriptors.count] : -1;
        pthread_mutex_unlock(&wrap->lock);
        if (fd >= 0)
            wrap->inner->ops->close(wrap->inner, fd);
    } while (fd >= 0);
}

/* Counts the call and returns the error to give instead of making it, 0 for none. */
static int enter(struct wrap_sys *wrap, enum bw_sys_call call)
{
    pthread_mutex_lock(&wrap->lock);
    wrap->counts[call]++;
    wrap->counts[BW_SYS_CALL_ANY]++;
    __atomic_fetch_add(&wrap->base.calls, 1, __ATOMIC_RELAXED);
    bool fails = wrap->fail_at && (wrap->fail_call == call || wrap->fail_call == BW_SYS_CALL_ANY) &&
                 wrap->counts[wrap->fail_call] == wrap->fail_at;
    bool dies = fails && wrap->kills;
    wrap->fired |= fails;
    wrap->dead |= dies;
    int error = fails || wrap->dead ? -wrap->fail_error : 0;
    pthread_mutex_unlock(&wrap->lock);
    if (dies)
        descriptors_close(wrap);
    return error;
}

static void descriptor_add(struct wrap_sys *wrap, int fd)
{
    pthread_mutex_lock(&wrap->lock);
    int rc = bw_vec_push(&wrap->descriptors, fd);
    pthread_mutex_unlock(&wrap->lock);
    assert(!rc); /* a test tool: out of memory here would only hide a leak */
    (void)rc;
}

/* Whether it was among those that are open. */
static bool descriptor_take(struct wrap_sys *wrap, int fd)
{
    bool found = false;
    pthread_mutex_lock(&wrap->lock);
    for (size_t i = 0; i < wrap->descriptors.count && !found; i++) {
        found = wrap->descriptors.data[i] == fd;
        if (found)
            wrap->descriptors.data[i] = wrap->descriptors.data[--wrap->descriptors.count];
    }
    pthread_mutex_unlock(&wrap->lock);
    return found;
}

static int wrap_open(struct bw_sys *sys, const char *path, int flags)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_OPEN);
    if (!rc)
        rc = wrap->inner->ops->open(wrap->inner, path, flags);
    if (rc >= 0)
        descriptor_add(wrap, rc);
    return rc;
}

static int wrap_close(struct bw_sys *sys, int fd)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int injected = enter(wrap, BW_SYS_CALL_CLOSE);
    int rc = descriptor_take(wrap, fd) ? wrap->inner->ops->close(wrap->inner, fd) : -EBADF;
    return injected ? injected : rc;
}

static int64_t wrap_read(struct bw_sys *sys, int fd, void *data, uint64_t size_bytes)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_READ);
    return rc ? rc : wrap->inner->ops->read(wrap->inner, fd, data, size_bytes);
}

static int64_t wrap_write(struct bw_sys *sys, int fd, const void *data, uint64_t size_bytes)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_WRITE);
    return rc ? rc : wrap->inner->ops->write(wrap->inner, fd, data, size_bytes);
}

static int64_t wrap_pread(struct bw_sys *sys, int fd, void *data, uint64_t size_bytes, uint64_t offset)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_PREAD);
    return rc ? rc : wrap->inner->ops->pread(wrap->inner, fd, data, size_bytes, offset);
}

static int64_t wrap_pwrite(struct bw_sys *sys, int fd, const void *data, uint64_t size_bytes, uint64_t offset)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_PWRITE);
    return rc ? rc : wrap->inner->ops->pwrite(wrap->inner, fd, data, size_bytes, offset);
}

static int wrap_ioctl(struct bw_sys *sys, int fd, unsigned long request, void *argument)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_IOCTL);
    if (rc)
        return rc;
    rc = wrap->inner->ops->ioctl(wrap->inner, fd, request, argument);
    if (rc >= 0 && request == DRM_IOCTL_PRIME_HANDLE_TO_FD) /* the one that opens something */
        descriptor_add(wrap, ((const struct drm_prime_handle *)argument)->fd);
    return rc;
}

static void note_mapped(struct wrap_sys *wrap, const struct bw_region *region, bool mapped)
{
    uint64_t start = (uint64_t)(uintptr_t)region->base;
    pthread_mutex_lock(&wrap->lock);
    int rc = 0;
    if (!region->base)
        wrap->hooked_bytes += mapped ? region->size_bytes : -region->size_bytes;
    else if (mapped)
        rc = bw_interval_assign(&wrap->mapped, start, region->size_bytes, 0);
    else
        rc = bw_interval_cut(&wrap->mapped, start, region->size_bytes);
    pthread_mutex_unlock(&wrap->lock);
    assert(!rc); /* a test tool: out of memory here would only hide a leak */
}

static int wrap_map(struct bw_sys *sys, const struct bw_map_request *request, struct bw_region *region)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_MAP);
    if (!rc)
        rc = wrap->inner->ops->map(wrap->inner, request, region);
    if (!rc)
        note_mapped(wrap, region, true);
    return rc;
}

static int wrap_unmap(struct bw_sys *sys, struct bw_region *region)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int injected = enter(wrap, BW_SYS_CALL_UNMAP);
    struct bw_region gone = *region;
    int rc = wrap->inner->ops->unmap(wrap->inner, region);
    if (!rc)
        note_mapped(wrap, &gone, false);
    return injected ? injected : rc;
}

static int wrap_protect(struct bw_sys *sys, struct bw_region *region, bool writable, bool executable)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_PROTECT);
    return rc ? rc : wrap->inner->ops->protect(wrap->inner, region, writable, executable);
}

static int wrap_poll(struct bw_sys *sys, struct bw_poll_request *requests, uint32_t count,
                     uint64_t timeout_ns)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_POLL);
    return rc ? rc : wrap->inner->ops->poll(wrap->inner, requests, count, timeout_ns);
}

static int wrap_list(struct bw_sys *sys, const char *path, int (*entry)(void *user, const char *name),
                     void *user)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_LIST);
    return rc ? rc : wrap->inner->ops->list(wrap->inner, path, entry, user);
}

static uint64_t wrap_clock_ns(struct bw_sys *sys)
{
    struct wrap_sys *wrap = wrap_of(sys);
    pthread_mutex_lock(&wrap->lock);
    wrap->clock_readings++;
    wrap->clock_ns += wrap->clock_tick_ns;
    bool taken = wrap->clock_taken;
    uint64_t now_ns = wrap->clock_ns;
    pthread_mutex_unlock(&wrap->lock);
    return taken ? now_ns : wrap->inner->ops->clock_ns(wrap->inner);
}

static void wrap_sleep_ns(struct bw_sys *sys, uint64_t duration_ns)
{
    struct bw_sys *inner = wrap_of(sys)->inner;
    inner->ops->sleep_ns(inner, duration_ns);
}

static int wrap_lock(struct bw_sys *sys, int fd, int *holder_pid)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_LOCK);
    return rc ? rc : wrap->inner->ops->lock(wrap->inner, fd, holder_pid);
}

static int wrap_pci_scan(struct bw_sys *sys, int (*found)(void *user, const struct bw_pci_id *id), void *user)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_PCI_SCAN);
    return rc ? rc : wrap->inner->ops->pci_scan(wrap->inner, found, user);
}

static int64_t wrap_size(struct bw_sys *sys, int fd)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_SIZE);
    return rc ? rc : wrap->inner->ops->size(wrap->inner, fd);
}

static int wrap_ring_open(struct bw_sys *sys, uint32_t entries, struct bw_ring **ring)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_RING_OPEN);
    return rc ? rc : wrap->inner->ops->ring_open(wrap->inner, entries, ring);
}

static int wrap_node(struct bw_sys *sys, const struct bw_node_request *request)
{
    struct wrap_sys *wrap = wrap_of(sys);
    int rc = enter(wrap, BW_SYS_CALL_NODE);
    if (rc)
        return rc;
    return wrap->inner->ops->node ? wrap->inner->ops->node(wrap->inner, request) : -ENOSYS;
}

static int wrap_queue_look(struct bw_sys *sys, int fd, uint32_t queue_id, struct bw_queue_view *view)
{
    struct bw_sys *inner = wrap_of(sys)->inner;
    return inner->ops->queue_look ? inner->ops->queue_look(inner, fd, queue_id, view) : -ENOTSUP;
}

static void wrap_destroy(struct bw_sys *sys)
{
    struct wrap_sys *wrap = wrap_of(sys);
    bw_sys_destroy(wrap->inner);
    bw_interval_map_free(&wrap->mapped);
    bw_vec_free(&wrap->descriptors);
    pthread_mutex_destroy(&wrap->lock);
    free(wrap);
}

static const struct bw_sys_ops wrap_ops = {
    .open = wrap_open,
    .close = wrap_close,
    .read = wrap_read,
    .write = wrap_write,
    .pread = wrap_pread,
    .pwrite = wrap_pwrite,
    .ioctl = wrap_ioctl,
    .map = wrap_map,
    .unmap = wrap_unmap,
    .protect = wrap_protect,
    .poll = wrap_poll,
    .list = wrap_list,
    .clock_ns = wrap_clock_ns,
    .sleep_ns = wrap_sleep_ns,
    .lock = wrap_lock,
    .pci_scan = wrap_pci_scan,
    .size = wrap_size,
    .ring_open = wrap_ring_open,
    .node = wrap_node,
    .queue_look = wrap_queue_look,
    .destroy = wrap_destroy,
};

int bw_sys_wrap_create(struct bw_sys *inner, struct bw_sys **sys)
{
    *sys = NULL;
    struct wrap_sys *wrap = calloc(1, sizeof *wrap);
    if (!wrap)
        return -ENOMEM;
    wrap->base.ops = &wrap_ops;
    wrap->inner = inner;
    if (pthread_mutex_init(&wrap->lock, NULL)) {
        free(wrap);
        return -ENOMEM;
    }
    bw_sys_retain(inner);
    *sys = &wrap->base;
    return 0;
}

static void rule_set(struct wrap_sys *wrap, enum bw_sys_call call, uint64_t nth, int error, bool kills)
{
    assert(error >= 0 && nth > 0);
    pthread_mutex_lock(&wrap->lock);
    wrap->fail_call = call;
    wrap->fail_at = error ? wrap->counts[call] + nth : 0;
    wrap->fail_error = error;
    wrap->kills = kills;
    wrap->fired = false;
    pthread_mutex_unlock(&wrap->lock);
}

void bw_sys_wrap_fail(struct bw_sys *sys, enum bw_sys_call call, uint64_t nth, int error)
{
    rule_set(wrap_of(sys), call, nth, error, false);
}

void bw_sys_wrap_kill(struct bw_sys *sys, uint64_t nth, int error)
{
    assert(error > 0);
    rule_set(wrap_of(sys), BW_SYS_CALL_ANY, nth, error, true);
}

int bw_sys_wrap_fired(const struct bw_sys *sys)
{
    struct wrap_sys *wrap = wrap_of(sys);
    pthread_mutex_lock(&wrap->lock);
    bool fired = wrap->fired;
    pthread_mutex_unlock(&wrap->lock);
    return fired;
}

uint64_t bw_sys_wrap_calls(const struct bw_sys *sys, enum bw_sys_call call)
{
    struct wrap_sys *wrap = wrap_of(sys);
    pthread_mutex_lock(&wrap->lock);
    uint64_t count = wrap->counts[call];
    pthread_mutex_unlock(&wrap->lock);
    return count;
}

void bw_sys_wrap_settle(struct bw_sys *sys)
{
    bw_kfd_process_end(sys);
}

void bw_sys_wrap_clock_tick(struct bw_sys *sys, uint64_t tick_ns)
{
    struct wrap_sys *wrap = wrap_of(sys);
    uint64_t now_ns = wrap->inner->ops->clock_ns(wrap->inner);
    pthread_mutex_lock(&wrap->lock);
    if (!wrap->clock_taken)
        wrap->clock_ns = now_ns;
    wrap->clock_taken = true;
    wrap->clock_tick_ns = tick_ns;
    pthread_mutex_unlock(&wrap->lock);
}

void bw_sys_wrap_clock_add(struct bw_sys *sys, uint64_t duration_ns)
{
    struct wrap_sys *wrap = wrap_of(sys);
    pthread_mutex_lock(&wrap->lock);
    wrap->clock_ns += duration_ns;
    pthread_mutex_unlock(&wrap->lock);
}

uint64_t bw_sys_wrap_clock_readings(const struct bw_sys *sys)
{
    struct wrap_sys *wrap = wrap_of(sys);
    pthread_mutex_lock(&wrap->lock);
    uint64_t count = wrap->clock_readings;
    pthread_mutex_unlock(&wrap->lock);
    return count;
}

uint64_t bw_sys_wrap_open_descriptors(struct bw_sys *sys)
{
    struct wrap_sys *wrap = wrap_of(sys);
    pthread_mutex_lock(&wrap->lock);
    uint64_t count = wrap->descriptors.count;
    pthread_mutex_unlock(&wrap->lock);
    return count;
}

uint64_t bw_sys_wrap_mapped_bytes(struct bw_sys *sys)
{
    struct wrap_sys *wrap = wrap_of(sys);
    pthread_mutex_lock(&wrap->lock);
    uint64_t total = wrap->hooked_bytes;
    if (wrap->mapped.count) {
        BW_INTERVAL_EACH(&wrap->mapped, handle, 0, UINT64_MAX)
        {
            const struct bw_interval *range = bw_interval_at(&wrap->mapped, handle);
            total += range->last - range->start + 1;
        }
    }
    pthread_mutex_unlock(&wrap->lock);
    return total;
}

const char *bw_sys_call_name(enum bw_sys_call call)
{
    static const char *const names[] = {"open",  "close",    "read",  "write",     "pread", "pwrite",
                                        "ioctl", "map",      "unmap", "protect",   "poll",  "list",
                                        "lock",  "pci_scan", "size",  "ring_open", "node",  "any"};
    assert((size_t)call < sizeof names / sizeof names[0]);
    return names[call];
}
