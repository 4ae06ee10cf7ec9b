#include "drivers/host/interrupt.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

#include "base/bits.h"

enum { PAGE_BYTES = 4096 };

void bw_host_interrupt_init(struct bw_host_interrupt *interrupt)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&interrupt->lock, NULL);
    pthread_cond_init(&interrupt->raised, &attributes);
    pthread_condattr_destroy(&attributes);
    interrupt->pending = interrupt->waiters = 0;
}

void bw_host_interrupt_fini(struct bw_host_interrupt *interrupt)
{
    pthread_cond_destroy(&interrupt->raised);
    pthread_mutex_destroy(&interrupt->lock);
}

void bw_host_interrupt_raise(struct bw_host_interrupt *interrupt)
{
    __atomic_store_n(&interrupt->pending, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&interrupt->waiters, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&interrupt->lock);
        pthread_cond_broadcast(&interrupt->raised);
        pthread_mutex_unlock(&interrupt->lock);
    }
}

void bw_host_interrupt_wait(struct bw_host_interrupt *interrupt, uint64_t timeout_ns)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    uint64_t end_ns = (uint64_t)deadline.tv_nsec + timeout_ns;
    deadline.tv_sec += (time_t)(end_ns / 1000000000);
    deadline.tv_nsec = (long)(end_ns % 1000000000);
    int rc = 0;
    pthread_mutex_lock(&interrupt->lock);
    __atomic_add_fetch(&interrupt->waiters, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&interrupt->pending, __ATOMIC_SEQ_CST) && rc == 0)
        rc = pthread_cond_timedwait(&interrupt->raised, &interrupt->lock, &deadline);
    __atomic_store_n(&interrupt->pending, 0, __ATOMIC_SEQ_CST);
    __atomic_sub_fetch(&interrupt->waiters, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&interrupt->lock);
}

enum { RUNS, ENDED, LEFT_BEHIND }; /* of a thread */

void bw_host_left_init(struct bw_host_left *left, struct bw_sys *sys)
{
    *left = (struct bw_host_left){.sys = sys, .users = 1};
}

bool bw_host_left_wait(struct bw_host_left *left, uint32_t *ended, uint64_t step_ns, uint64_t timeout_ns)
{
    struct bw_sys *sys = left->sys;
    uint64_t begin_ns =
        sys->ops->clock_ns(sys); /* not the sum of the steps: on a busy machine each is long */
    while (__atomic_load_n(ended, __ATOMIC_ACQUIRE) == RUNS &&
           sys->ops->clock_ns(sys) - begin_ns < timeout_ns)
        sys->ops->sleep_ns(sys, step_ns);
    if (__atomic_load_n(ended, __ATOMIC_ACQUIRE) == ENDED)
        return true;
    if (!left->any)
        bw_sys_retain(left->sys); /* which may be ended before the thread is */
    left->any = true;
    __atomic_add_fetch(&left->users, 1, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(ended, LEFT_BEHIND, __ATOMIC_ACQ_REL) == RUNS)
        return false;
    __atomic_sub_fetch(&left->users, 1, __ATOMIC_RELAXED);
    return true;
}

bool bw_host_left_end(uint32_t *ended)
{
    return __atomic_exchange_n(ended, ENDED, __ATOMIC_ACQ_REL) == LEFT_BEHIND;
}

bool bw_host_left_release(struct bw_host_left *left)
{
    return __atomic_sub_fetch(&left->users, 1, __ATOMIC_ACQ_REL) == 0;
}

void bw_host_left_fini(struct bw_host_left *left)
{
    for (size_t i = 0; i < left->memory.count; i++)
        left->sys->ops->unmap(left->sys, &left->memory.data[i]);
    bw_vec_free(&left->memory);
    if (left->any)
        bw_sys_destroy(left->sys);
}

void bw_host_memory_free(struct bw_host_left *left, struct bw_memory *memory)
{
    if (memory->cpu.size_bytes && !left->any)
        left->sys->ops->unmap(left->sys, &memory->cpu);
    else if (memory->cpu.size_bytes)
        (void)bw_vec_push(&left->memory, memory->cpu); /* no memory for that: it stays for ever */
    *memory = (struct bw_memory){0};
}

/* Before anybody touches the pages. A policy that somebody else gave the thread (numactl) counts more. */
static void place(struct bw_sys *sys, const struct bw_memory *memory, uint32_t flags)
{
    uint32_t node = flags >> BW_ALLOC_NODE_SHIFT & BW_ALLOC_NODE_MASK;
    struct bw_node_request request = {.operation = BW_NODE_ASK};
    if (!node || !sys->ops->node || sys->ops->node(sys, &request))
        return;
    request = (struct bw_node_request){BW_NODE_RANGE, (int32_t)node - 1, (uintptr_t)memory->cpu.base,
                                       memory->cpu.size_bytes};
    (void)sys->ops->node(sys, &request); /* farther away, it works as well */
}

int bw_host_memory_alloc(struct bw_sys *sys, const char *subsystem, uint64_t size_bytes, uint32_t flags,
                         struct bw_memory *memory, struct bw_err *err)
{
    int rc = -ENOMEM;
    *memory = (struct bw_memory){.flags = flags};
    assert(size_bytes > 0);
    if (size_bytes <= UINT64_MAX - PAGE_BYTES) {
        struct bw_map_request request = {
            .fd = -1, .size_bytes = bw_align_up(size_bytes, PAGE_BYTES), .writable = true};
        rc = sys->ops->map(sys, &request, &memory->cpu);
    }
    if (rc)
        return bw_fail(err, rc, subsystem, "%llu bytes of memory", (unsigned long long)size_bytes);
    place(sys, memory, flags);
    memory->address = (uintptr_t)memory->cpu.base;
    memory->size_bytes = memory->cpu.size_bytes;
    return 0;
}

int bw_host_memory_map_peer(struct bw_device *device, struct bw_device *owner, struct bw_memory *memory,
                            struct bw_err *err)
{
    if (memory->cpu.size_bytes && !memory->cpu.ops && (uintptr_t)memory->cpu.base == memory->address)
        return 0;
    return bw_fail(err, -EOPNOTSUPP, device->ops->name, "memory of %s without a mapping here",
                   owner->info.name);
}
