/* Blocks: allocations of a driver, reused only when the device has passed the point at which they were freed.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/hcq.h"

enum {
    ROUND_BYTES_MAX = 16 << 20, /* rounding wastes up to an eighth: at most 2 MiB */
    RETIRING_LOOK = 16,         /* blocks looked at that have not passed before giving up */
};

/* Of a failed device nobody knows what it still does. */
static bool queue_is_done(const struct bw_hcq_queue *queue, struct bw_point point)
{
    return bw_point_reached(bw_hcq_queue_now(queue), point) && !bw_hcq_device_failed(queue->owner);
}

static bool retirement_passed(const struct bw_hcq_retirement *retirement)
{
    for (uint32_t i = 0; retirement && i < retirement->count; i++) {
        if (!queue_is_done(retirement->entries[i].queue, retirement->entries[i].point))
            return false;
    }
    return true;
}

/* Everything submitted so far on any queue that may touch the block. NULL: nothing is outstanding. *failed:
 * no memory for the list. */
static struct bw_hcq_retirement *retirement_make(const struct bw_block *block, bool *failed)
{
    uint64_t devices = __atomic_load_n(&block->users, __ATOMIC_ACQUIRE);
    struct bw_hcq_retirement *retirement = NULL;
    *failed = false;
    for (; devices; devices &= devices - 1) {
        struct bw_hcq_device *device =
            bw_hcq_device_at(block->owner->ctx, (uint32_t)__builtin_ctzll(devices));
        for (uint32_t i = 0; device && i < device->queue_count; i++) {
            struct bw_hcq_queue *queue = &device->queues[i];
            struct bw_point point = bw_hcq_queue_submitted(queue);
            if (queue_is_done(queue, point))
                continue;
            uint32_t count = retirement ? retirement->count : 0;
            void *grown =
                realloc(retirement, sizeof *retirement + (count + 1) * sizeof retirement->entries[0]);
            if (!grown) {
                free(retirement);
                *failed = true;
                return NULL;
            }
            retirement = grown;
            retirement->count = count + 1;
            retirement->entries[count].queue = queue;
            retirement->entries[count].point = point;
        }
    }
    return retirement;
}

static void block_free(struct bw_block *block)
{
    struct bw_device *device = block->owner->device;
    uint64_t others = block->reach & ~(1ull << block->owner->index);
    for (; others; others &= others - 1) {
        struct bw_hcq_device *other = bw_hcq_device_at(block->owner->ctx, (uint32_t)__builtin_ctzll(others));
        if (other && other->device->ops->unmap_peer)
            other->device->ops->unmap_peer(other->device, device, &block->memory);
    }
    device->ops->free(device, &block->memory);
    free(block->retirement);
    free(block);
}

void bw_hcq_block_free(void *user, void *block)
{
    (void)user;
    block_free(block);
}

static void retiring_append(struct bw_hcq_device *owner, struct bw_block *block)
{
    block->next = NULL;
    *owner->retiring_end = block;
    owner->retiring_end = &block->next;
}

/* Puts a block that waits for a failed device behind the others, so that these are looked at. */
static bool retiring_defer(struct bw_hcq_device *owner, struct bw_block **link)
{
    struct bw_block *block = *link;
    bool stuck = false;
    for (uint32_t i = 0; i < block->retirement->count; i++)
        stuck |= bw_hcq_device_failed(block->retirement->entries[i].queue->owner);
    if (!stuck || !block->next)
        return false;
    *link = block->next;
    retiring_append(owner, block);
    return true;
}

/* Moves what the device is done with from the list of retiring blocks to the cache; under owner->lock. Blocks
 * retire roughly in order, so the search ends at the first few that have not passed. */
static void retiring_settle(struct bw_hcq_device *owner, bool all)
{
    uint32_t outstanding = 0;
    for (struct bw_block **link = &owner->retiring; *link && outstanding < RETIRING_LOOK;) {
        struct bw_block *block = *link;
        if (!all && !retirement_passed(block->retirement)) {
            outstanding++;
            if (!retiring_defer(owner, link))
                link = &block->next;
            continue;
        }
        *link = block->next;
        if (owner->retiring_end == &block->next)
            owner->retiring_end = link;
        free(block->retirement);
        block->retirement = NULL;
        block->next = NULL;
        bw_reuse_put(&owner->reuse, block->memory.size_bytes, block->memory.flags, block);
    }
}

void bw_hcq_cache_flush(struct bw_hcq_device *device, bool all)
{
    pthread_mutex_lock(&device->lock);
    retiring_settle(device, all);
    bw_reuse_trim(&device->reuse, 0);
    pthread_mutex_unlock(&device->lock);
}

static void retirement_forget(struct bw_hcq_retirement *retirement, const struct bw_hcq_device *gone)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; retirement && i < retirement->count; i++) {
        if (retirement->entries[i].queue->owner != gone)
            retirement->entries[kept++] = retirement->entries[i];
    }
    if (retirement)
        retirement->count = kept;
}

void bw_hcq_memory_forget(struct bw_hcq_device *owner, const struct bw_hcq_device *gone)
{
    uint64_t others = ~(1ull << gone->index);
    pthread_mutex_lock(&owner->lock);
    BW_INTERVAL_EACH(&owner->live, handle, 0, UINT64_MAX)
    {
        struct bw_block *block = (struct bw_block *)(uintptr_t)bw_interval_at(&owner->live, handle)->value;
        if (block->owner == gone)
            continue;
        __atomic_fetch_and(&block->reach, others, __ATOMIC_RELAXED);
        __atomic_fetch_and(&block->users, others, __ATOMIC_RELAXED);
    }
    for (struct bw_block *block = owner->retiring; block; block = block->next) {
        block->reach &= others;
        retirement_forget(block->retirement, gone);
    }
    bw_reuse_trim(&owner->reuse, 0); /* what is cached may be mapped there, too */
    pthread_mutex_unlock(&owner->lock);
}

static struct bw_block *cache_take(struct bw_hcq_device *owner, uint64_t rounded_bytes, uint32_t flags)
{
    pthread_mutex_lock(&owner->lock);
    retiring_settle(owner, false);
    struct bw_block *block = bw_reuse_take(&owner->reuse, rounded_bytes, flags);
    pthread_mutex_unlock(&owner->lock);
    return block;
}

static int live_insert(struct bw_hcq_device *owner, struct bw_block *block)
{
    int rc = bw_interval_insert(&owner->live, block->memory.address, block->size_bytes, (uintptr_t)block,
                                &block->live_handle);
    if (!rc)
        owner->live_bytes += block->size_bytes;
    return rc;
}

static void live_remove(struct bw_hcq_device *owner, struct bw_block *block)
{
    bw_interval_remove(&owner->live, block->live_handle);
    assert(owner->live_bytes >= block->size_bytes);
    owner->live_bytes -= block->size_bytes;
    owner->freed[owner->freed_count++ % BW_HCQ_FREED_COUNT] =
        (struct bw_hcq_freed){block->memory.address, block->size_bytes};
}

/* Few distinct sizes make reuse likely; a large buffer is not worth an eighth of itself. */
static uint64_t size_round(uint64_t size_bytes)
{
    return size_bytes <= ROUND_BYTES_MAX ? bw_reuse_round(size_bytes) : size_bytes;
}

/* Asks the driver; when it is out of memory, gives it first what is cached and passed, then, after waiting,
 * all of the cache. */
static int memory_alloc(struct bw_hcq_device *device, uint64_t size_bytes, uint32_t flags,
                        struct bw_memory *memory, struct bw_err *err)
{
    const struct bw_driver_ops *ops = device->device->ops;
    int rc = ops->alloc(device->device, size_bytes, flags, memory, err);
    for (int attempt = 0; rc == -ENOMEM && attempt < 2; attempt++) {
        if (attempt == 1)
            (void)bw_hcq_devices_wait(device->ctx, UINT64_MAX, NULL);
        bw_hcq_cache_flush(device, false);
        rc = ops->alloc(device->device, size_bytes, flags, memory, err);
    }
    if (rc && err) {
        if (!err->device[0])
            bw_err_device(err, device->device->info.name);
        if (!err->hint[0])
            bw_err_hint(err, "%llu bytes are in live buffers", (unsigned long long)device->live_bytes);
    }
    return rc;
}

static int block_new(struct bw_hcq_device *device, uint64_t rounded_bytes, uint32_t flags,
                     struct bw_block **out, struct bw_err *err)
{
    struct bw_block *block = calloc(1, sizeof *block);
    if (!block)
        return bw_fail(err, -ENOMEM, "hcq", "buffer of %llu bytes", (unsigned long long)rounded_bytes);
    block->owner = device;
    int rc = memory_alloc(device, rounded_bytes, flags, &block->memory, err);
    if (rc) {
        free(block);
        return rc;
    }
    assert(block->memory.size_bytes >= rounded_bytes);
    block->memory.size_bytes = rounded_bytes; /* what reuse looks for */
    block->memory.flags = flags;
    block->reach = 1ull << device->index;
    *out = block;
    return 0;
}

/* Fresh, or from the cache: it has one reference from here on. */
static void block_begin(struct bw_block *block, uint64_t size_bytes)
{
    block->size_bytes = size_bytes;
    block->references = 1;
    block->users = 1ull << block->owner->index;
    block->id = __atomic_add_fetch(&block->owner->ctx->block_serial, 1, __ATOMIC_RELAXED);
}

/* Under device->lock. */
static int file_make(struct bw_hcq_device *device)
{
    struct bw_block *block = calloc(1, sizeof *block);
    if (!block)
        return -ENOMEM;
    uint64_t size_bytes = device->device->info.file_bytes;
    block->owner = device;
    block->reach = 1ull << device->index;
    block->memory = (struct bw_memory){
        .address = device->device->caps.file_address, .size_bytes = size_bytes, .flags = BW_HCQ_BLOCK_FILE};
    block_begin(block, size_bytes);
    int rc = live_insert(device, block);
    if (rc)
        free(block);
    else
        device->file = block;
    return rc;
}

int bw_block_file(struct bw_hcq_device *device, struct bw_block **out, struct bw_err *err)
{
    pthread_mutex_lock(&device->lock);
    int rc = device->file ? 0 : file_make(device);
    pthread_mutex_unlock(&device->lock);
    if (rc)
        return bw_fail(err, rc, "hcq", "the file of %s", device->device->info.name);
    bw_block_hold(device->file);
    *out = device->file;
    return 0;
}

int bw_block_create(struct bw_hcq_device *device, uint64_t size_bytes, uint32_t flags, struct bw_block **out,
                    struct bw_err *err)
{
    assert(size_bytes > 0);
    uint64_t rounded_bytes = size_round(size_bytes);
    struct bw_block *block = cache_take(device, rounded_bytes, flags);
    int rc = block ? 0 : block_new(device, rounded_bytes, flags, &block, err);
    if (rc)
        return rc;
    block_begin(block, size_bytes);
    pthread_mutex_lock(&device->lock);
    rc = live_insert(device, block);
    pthread_mutex_unlock(&device->lock);
    if (rc) {
        block_free(block);
        return bw_fail(err, rc, "hcq", "buffer of %llu bytes", (unsigned long long)size_bytes);
    }
    *out = block;
    return 0;
}

void bw_block_hold(struct bw_block *block)
{
    uint32_t before = __atomic_fetch_add(&block->references, 1, __ATOMIC_RELAXED);
    assert(before > 0);
}

/* Whether all that may touch the block are done with it. */
static bool users_wait(const struct bw_block *block)
{
    struct bw_ctx *ctx = block->owner->ctx;
    uint64_t devices = __atomic_load_n(&block->users, __ATOMIC_ACQUIRE);
    return bw_hcq_devices_wait(ctx, devices, NULL) == 0 &&
           !(__atomic_load_n(&ctx->failed, __ATOMIC_ACQUIRE) & devices);
}

void bw_block_release(struct bw_block *block)
{
    if (!block || __atomic_sub_fetch(&block->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    struct bw_hcq_device *owner = block->owner;
    bool failed;
    if (bw_ctx_forked(owner->ctx))
        return; /* the memory is the parent's */
    block->retirement = retirement_make(block, &failed);
    if (failed && !users_wait(block))
        return; /* neither memory to remember when, nor a device that gets there: what it may still write is
                   left alone */
    pthread_mutex_lock(&owner->lock);
    live_remove(owner, block);
    retiring_append(owner, block);
    retiring_settle(owner, false);
    pthread_mutex_unlock(&owner->lock);
}

static bool cpu_can_reach(const struct bw_block *block, const struct bw_hcq_device *device)
{
    return device->device->caps.host_addressable && bw_block_map(block) &&
           (uintptr_t)block->memory.cpu.base != block->memory.address;
}

static void user_note(struct bw_block *block, uint64_t bit)
{
    if (__atomic_load_n(&block->users, __ATOMIC_ACQUIRE) & bit)
        return;
    __atomic_fetch_or(&block->users, bit, __ATOMIC_RELEASE);
    __atomic_fetch_add(&block->owner->ctx->users_epoch, 1, __ATOMIC_RELEASE);
}

/* Makes sure that the block is mapped there. */
static int block_map_to(struct bw_block *block, struct bw_hcq_device *device, struct bw_err *err)
{
    uint64_t bit = 1ull << device->index;
    if (__atomic_load_n(&block->reach, __ATOMIC_ACQUIRE) & bit)
        return 0;
    const struct bw_driver_ops *ops = device->device->ops;
    if (!(block->memory.flags & BW_BUFFER_HOST)) { /* host memory has no window in front */
        int rc = bw_hcq_peer_check(device, block->owner, err);
        if (rc)
            return rc;
    }
    if (!ops->map_peer)
        return bw_fail(err, -EOPNOTSUPP, "hcq", "memory of %s for %s", block->owner->device->info.name,
                       device->device->info.name);
    pthread_mutex_lock(&block->owner->lock);
    int rc = ops->map_peer(device->device, block->owner->device, &block->memory, err);
    if (!rc)
        __atomic_fetch_or(&block->reach, bit, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&block->owner->lock);
    return rc;
}

int bw_block_reach(struct bw_block *block, struct bw_hcq_device *device, uint64_t *address,
                   struct bw_err *err)
{
    bool through_cpu = cpu_can_reach(block, device); /* a CPU queue goes through the CPU's mapping */
    int rc = through_cpu ? 0 : block_map_to(block, device, err);
    if (rc)
        return rc;
    *address = through_cpu ? (uintptr_t)block->memory.cpu.base : block->memory.address;
    user_note(block, 1ull << device->index);
    return 0;
}
