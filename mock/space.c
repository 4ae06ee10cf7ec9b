#include "mock/space.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "mock/memory.h"

enum {
    COPY_CHUNK = 1 << 20, /* longest copy under the lock, so that an unmap never waits long */
    SERIAL_SHIFT = 32,    /* generations below are the space's own */
};

int bw_mock_space_init(struct bw_mock_space *space, uint64_t serial)
{
    memset(space, 0, sizeof *space);
    assert(serial >> SERIAL_SHIFT == 0);
    atomic_store(&space->generation, serial << SERIAL_SHIFT);
    return -pthread_rwlock_init(&space->lock, NULL);
}

void bw_mock_space_fini(struct bw_mock_space *space)
{
    bw_vec_free(&space->maps);
    pthread_rwlock_destroy(&space->lock);
}

/* How many mappings start at or below va. */
static size_t count_below(const struct bw_mock_space *space, uint64_t va)
{
    size_t low = 0, high = space->maps.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (space->maps.data[middle].va <= va)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct bw_mock_mapping *holder(const struct bw_mock_space *space, uint64_t va)
{
    size_t count = count_below(space, va);
    if (!count)
        return NULL;
    struct bw_mock_mapping *mapping = &space->maps.data[count - 1];
    return va - mapping->va < mapping->size ? mapping : NULL;
}

int bw_mock_space_map(struct bw_mock_space *space, const struct bw_mock_mapping *mapping)
{
    assert(mapping->size && mapping->va + mapping->size > mapping->va);
    int rc = 0;
    pthread_rwlock_wrlock(&space->lock);
    size_t at = count_below(space, mapping->va);
    struct bw_mock_mapping *maps = space->maps.data;
    if (at && maps[at - 1].va + maps[at - 1].size > mapping->va)
        rc = -EINVAL;
    else if (at < space->maps.count && mapping->va + mapping->size > maps[at].va)
        rc = -EINVAL;
    else if (bw_vec_reserve(&space->maps, 1))
        rc = -ENOMEM;
    if (!rc) {
        maps = space->maps.data;
        memmove(maps + at + 1, maps + at, (space->maps.count - at) * sizeof *maps);
        maps[at] = *mapping;
        space->maps.count++;
    }
    pthread_rwlock_unlock(&space->lock);
    return rc;
}

int bw_mock_space_unmap(struct bw_mock_space *space, uint64_t va)
{
    int rc = 0;
    pthread_rwlock_wrlock(&space->lock);
    struct bw_mock_mapping *mapping = holder(space, va);
    if (!mapping || mapping->va != va) {
        rc = -ENOENT;
    } else if (mapping->queues) {
        rc = -EBUSY;
    } else {
        size_t at = (size_t)(mapping - space->maps.data);
        memmove(mapping, mapping + 1, (space->maps.count - at - 1) * sizeof *mapping);
        space->maps.count--;
        atomic_fetch_add(&space->generation, 1);
    }
    pthread_rwlock_unlock(&space->lock);
    return rc;
}

bool bw_mock_space_find(struct bw_mock_space *space, uint64_t va, struct bw_mock_mapping *found)
{
    pthread_rwlock_rdlock(&space->lock);
    struct bw_mock_mapping *mapping = holder(space, va);
    if (mapping)
        *found = *mapping;
    pthread_rwlock_unlock(&space->lock);
    return mapping != NULL;
}

void bw_mock_space_hold(struct bw_mock_space *space, uint64_t va, int by)
{
    pthread_rwlock_wrlock(&space->lock);
    struct bw_mock_mapping *mapping = holder(space, va);
    assert(mapping && (by > 0 || mapping->queues));
    mapping->queues += (uint32_t)by;
    pthread_rwlock_unlock(&space->lock);
}

bool bw_mock_space_nearest(struct bw_mock_space *space, uint64_t va, struct bw_mock_mapping *found)
{
    pthread_rwlock_rdlock(&space->lock);
    bool any = space->maps.count > 0;
    if (any) {
        size_t count = count_below(space, va);
        *found = space->maps.data[count ? count - 1 : 0];
    }
    pthread_rwlock_unlock(&space->lock);
    return any;
}

void *bw_mock_space_resolve(struct bw_mock_space *space, uint64_t va, uint32_t access, uint64_t *start,
                            uint64_t *bytes)
{
    uint8_t *host = NULL;
    pthread_rwlock_rdlock(&space->lock);
    struct bw_mock_mapping *mapping = holder(space, va);
    if (mapping && (mapping->access & access) == access) {
        host = mapping->host + (va - mapping->va);
        *start = mapping->va;
        *bytes = mapping->size - (va - mapping->va);
    }
    pthread_rwlock_unlock(&space->lock);
    return host;
}

/* The host address of va and how many of size bytes lie behind it; the caller holds the lock. */
static uint8_t *reach(const struct bw_mock_space *space, uint64_t va, uint32_t access, uint64_t *size,
                      struct bw_mock_violation *violation)
{
    struct bw_mock_mapping *mapping = holder(space, va);
    if (!mapping || (mapping->access & access) != access) {
        *violation = (struct bw_mock_violation){.va = va, .access = access, .mapped = mapping != NULL};
        return NULL;
    }
    uint64_t left = mapping->size - (va - mapping->va);
    if (*size > left)
        *size = left;
    return mapping->host + (va - mapping->va);
}

/* Engines reach memory at another host address than clients do, except for user memory: ThreadSanitizer would
 * see the accesses there, but not the signals elsewhere that order them. What a device does is left out of
 * its picture. */
#if defined(__SANITIZE_THREAD__)
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#define DEVICE_BEGIN() \
    (AnnotateIgnoreReadsBegin(__FILE__, __LINE__), AnnotateIgnoreWritesBegin(__FILE__, __LINE__))
#define DEVICE_END() (AnnotateIgnoreWritesEnd(__FILE__, __LINE__), AnnotateIgnoreReadsEnd(__FILE__, __LINE__))
#else
#define DEVICE_BEGIN() ((void)0)
#define DEVICE_END()   ((void)0)
#endif

/* Engines and the client's threads meet in this memory: words go through atomics, bulk through memcpy. */
static void load(void *to, const uint8_t *from, uint64_t size)
{
    if (size == 4 && (uintptr_t)from % 4 == 0) {
        uint32_t value = __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE);
        memcpy(to, &value, 4);
    } else if (size == 8 && (uintptr_t)from % 8 == 0) {
        uint64_t value = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);
        memcpy(to, &value, 8);
    } else {
        memcpy(to, from, size);
    }
}

static void store(uint8_t *to, const void *from, uint64_t size)
{
    if (size == 4 && (uintptr_t)to % 4 == 0) {
        uint32_t value;
        memcpy(&value, from, 4);
        __atomic_store_n((uint32_t *)to, value, __ATOMIC_RELEASE);
    } else if (size == 8 && (uintptr_t)to % 8 == 0) {
        uint64_t value;
        memcpy(&value, from, 8);
        __atomic_store_n((uint64_t *)to, value, __ATOMIC_RELEASE);
    } else {
        memcpy(to, from, size);
    }
}

int bw_mock_space_read(struct bw_mock_space *space, uint64_t va, void *data, uint64_t size,
                       struct bw_mock_violation *violation)
{
    uint8_t *to = data;
    while (size) {
        uint64_t part = size < COPY_CHUNK ? size : COPY_CHUNK;
        pthread_rwlock_rdlock(&space->lock);
        const uint8_t *from = reach(space, va, BW_MOCK_READ, &part, violation);
        DEVICE_BEGIN();
        if (from)
            load(to, from, part);
        DEVICE_END();
        pthread_rwlock_unlock(&space->lock);
        if (!from)
            return -EFAULT;
        va += part;
        to += part;
        size -= part;
    }
    return 0;
}

int bw_mock_space_write(struct bw_mock_space *space, uint64_t va, const void *data, uint64_t size,
                        struct bw_mock_violation *violation)
{
    const uint8_t *from = data;
    while (size) {
        uint64_t part = size < COPY_CHUNK ? size : COPY_CHUNK;
        pthread_rwlock_rdlock(&space->lock);
        uint8_t *to = reach(space, va, BW_MOCK_WRITE, &part, violation);
        DEVICE_BEGIN();
        if (to)
            store(to, from, part);
        DEVICE_END();
        pthread_rwlock_unlock(&space->lock);
        if (!to)
            return -EFAULT;
        va += part;
        from += part;
        size -= part;
    }
    return 0;
}

/* Memory that was never written is not given pages by being copied, or copied to: a copy of gigabytes of it
 * is as cheap as it is on a machine that has them. Short copies are not worth the asking. */
static bool copy_hole(const struct bw_mock_space *space, uint64_t dst, uint64_t src, uint8_t *to,
                      const uint8_t *from, uint64_t size)
{
    const struct bw_mock_pool *target = holder(space, dst)->pool, *source = holder(space, src)->pool;
    if (size < COPY_CHUNK || !target || !source || !bw_mock_pool_is_hole(source, from, size))
        return false;
    bw_mock_pool_clear(target, to, size);
    return true;
}

int bw_mock_space_copy(struct bw_mock_space *space, uint64_t dst, uint64_t src, uint64_t size,
                       struct bw_mock_violation *violation)
{
    while (size) {
        /* Whole chunks of the source: reading memory through a mapping gives it pages. */
        uint64_t part = COPY_CHUNK - src % COPY_CHUNK;
        part = size < part ? size : part;
        pthread_rwlock_rdlock(&space->lock);
        const uint8_t *from = reach(space, src, BW_MOCK_READ, &part, violation);
        uint8_t *to = from ? reach(space, dst, BW_MOCK_WRITE, &part, violation) : NULL;
        DEVICE_BEGIN();
        if (to && !copy_hole(space, dst, src, to, from, part))
            memmove(to, from, part);
        DEVICE_END();
        pthread_rwlock_unlock(&space->lock);
        if (!to)
            return -EFAULT;
        dst += part;
        src += part;
        size -= part;
    }
    return 0;
}

static void repeat(uint8_t *to, uint32_t value, uint32_t unit, uint64_t size)
{
    if (unit == 1) {
        memset(to, (int)(value & 0xff), size);
        return;
    }
    for (uint64_t at = 0; at < size; at += unit)
        memcpy(to + at, &value, unit);
}

int bw_mock_space_fill(struct bw_mock_space *space, uint64_t dst, uint32_t value, uint32_t unit,
                       uint64_t size, struct bw_mock_violation *violation)
{
    assert((unit == 1 || unit == 2 || unit == 4) && size % unit == 0);
    while (size) {
        uint64_t part = size < COPY_CHUNK ? size : COPY_CHUNK;
        pthread_rwlock_rdlock(&space->lock);
        uint8_t *to = reach(space, dst, BW_MOCK_WRITE, &part, violation);
        DEVICE_BEGIN();
        if (to)
            repeat(to, value, unit, part);
        DEVICE_END();
        pthread_rwlock_unlock(&space->lock);
        if (!to)
            return -EFAULT;
        dst += part;
        size -= part;
    }
    return 0;
}

int bw_mock_space_atomic(struct bw_mock_space *space, uint64_t va, uint32_t size,
                         uint64_t (*change)(uint64_t value, void *user), void *user, uint64_t *before,
                         struct bw_mock_violation *violation)
{
    assert((size == 4 || size == 8) && va % size == 0);
    uint64_t part = size;
    pthread_rwlock_rdlock(&space->lock);
    uint8_t *at = reach(space, va, BW_MOCK_READ | BW_MOCK_WRITE, &part, violation);
    if (at && size == 4) {
        uint32_t old = __atomic_load_n((uint32_t *)at, __ATOMIC_ACQUIRE);
        while (!__atomic_compare_exchange_n((uint32_t *)at, &old, (uint32_t)change(old, user), false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            ;
        *before = old;
    } else if (at) {
        uint64_t old = __atomic_load_n((uint64_t *)at, __ATOMIC_ACQUIRE);
        while (!__atomic_compare_exchange_n((uint64_t *)at, &old, change(old, user), false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE))
            ;
        *before = old;
    }
    pthread_rwlock_unlock(&space->lock);
    return at ? 0 : -EFAULT;
}
