/* The render node's ioctls that do work, by a client of the tests' own, with no KFD on the machine: what
 * runs, in which order, and what is refused with which errno (amdgpu_cs.c, amdgpu_gem.c, amdgpu_ctx.c). */
#include <errno.h>
#include <sys/mman.h>

#include "tests/unit/mock/client.h"

#define DRM(number, bytes) _IOC(_IOC_READ | _IOC_WRITE, 'd', number, bytes)

enum { NR_CLOSE = 0x09, NR_EXPORT = 0x2d, NR_IMPORT = 0x2e, NR_CREATE = 0x40, NR_MMAP = 0x41, NR_CTX = 0x42 };
enum { NR_LIST = 0x43, NR_CS = 0x44, NR_VA = 0x48, NR_WAIT = 0x49, NR_USERPTR = 0x51, NR_FENCES = 0x52 };
enum { COMPUTE_IP = 1, DMA_IP = 2 };
enum { DOMAIN_GTT = 2, DOMAIN_VRAM = 4, ALWAYS_VALID = 1 << 6, NO_CPU = 1 << 1 };
enum { READABLE = 2, WRITEABLE = 4, RUNNABLE = 8 };
#define WAIT_NS 5000000000ull

struct node {
    struct bw_sys *sys;
    int fd;
    uint64_t next_va;
    uint32_t context;
};

struct block {
    uint32_t handle;
    uint64_t va, size;
    struct bw_region cpu;
};

static int call(struct node *node, unsigned number, void *args, size_t bytes)
{
    return node->sys->ops->ioctl(node->sys, node->fd, DRM(number, bytes), args);
}

static int create(struct node *node, uint64_t size, uint64_t domains, uint64_t flags, uint32_t *handle)
{
    uint64_t args[4] = {size, 4096, domains, flags};
    int rc = call(node, NR_CREATE, args, sizeof args);
    *handle = (uint32_t)args[0];
    return rc;
}

static int place(struct node *node, uint32_t handle, uint32_t operation, uint32_t flags, uint64_t va,
                 uint64_t offset, uint64_t size)
{
    struct {
        uint32_t handle, pad, operation, flags;
        uint64_t va, offset, size;
    } args = {handle, 0, operation, flags, va, offset, size};
    return call(node, NR_VA, &args, sizeof args);
}

static int shut(struct node *node, uint32_t handle)
{
    uint32_t args[2] = {handle, 0};
    return call(node, NR_CLOSE, args, sizeof args);
}

/* Host memory at an address of its own, for the CPU too. */
static bool block_make(struct node *node, uint64_t size, struct block *block)
{
    *block = (struct block){.va = node->next_va, .size = size};
    node->next_va += size + 4096;
    uint64_t mmap_args;
    if (!BW_EQ(create(node, size, DOMAIN_GTT, ALWAYS_VALID, &block->handle), 0) ||
        !BW_EQ(place(node, block->handle, 1, READABLE | WRITEABLE | RUNNABLE, block->va, 0, size), 0))
        return false;
    mmap_args = block->handle;
    struct bw_map_request request = {.fd = node->fd, .size_bytes = size, .writable = true};
    bool ok = BW_EQ(call(node, NR_MMAP, &mmap_args, sizeof mmap_args), 0);
    request.offset = mmap_args;
    return ok && BW_EQ(node->sys->ops->map(node->sys, &request, &block->cpu), 0);
}

static void block_end(struct node *node, struct block *block)
{
    node->sys->ops->unmap(node->sys, &block->cpu);
    BW_EQ(shut(node, block->handle), 0);
}

static int context_make(struct node *node, uint32_t *id)
{
    uint32_t args[4] = {1, 0, 0, 0};
    int rc = call(node, NR_CTX, args, sizeof args);
    *id = args[0];
    return rc;
}

static int context_end(struct node *node, uint32_t id)
{
    uint32_t args[4] = {2, 0, id, 0};
    return call(node, NR_CTX, args, sizeof args);
}

static uint64_t context_flags(struct node *node, uint32_t id)
{
    struct {
        uint32_t op, flags, id, priority;
    } args = {4, 0, id, 0};
    BW_EQ(call(node, NR_CTX, &args, sizeof args), 0);
    return args.op | (uint64_t)args.flags << 32;
}

static bool node_open(struct node *node, const struct bw_mock_config *config)
{
    struct bw_err err = {0};
    *node = (struct node){.next_va = 0x100000000ull};
    if (!BW_OK(bw_mock_kfd_create(config, &node->sys, &err), &err))
        return false;
    node->fd = node->sys->ops->open(node->sys, "/dev/dri/renderD128", O_RDWR);
    return BW_TRUE(node->fd >= 0) && BW_EQ(context_make(node, &node->context), 0);
}

static bool node_plain(struct node *node)
{
    return node_open(node, &(struct bw_mock_config){.size = sizeof(struct bw_mock_config),
                                                    .arch = "gfx1100",
                                                    .gpu_count = 2,
                                                    .vram_bytes = 64 << 20,
                                                    .threads = 1,
                                                    .kfd_absent = true});
}

static void node_end(struct node *node)
{
    node->sys->ops->close(node->sys, node->fd);
    bw_sys_destroy(node->sys);
}

struct ib {
    uint32_t pad, flags;
    uint64_t va;
    uint32_t bytes, ip, instance, ring;
};

struct chunk {
    uint32_t id, words;
    uint64_t data;
};

/* Up to four chunks of any kind. */
static int submit(struct node *node, uint32_t context, uint32_t list, struct chunk *chunks, uint32_t count,
                  uint64_t *sequence)
{
    uint64_t addresses[4];
    struct {
        uint32_t context, list, count, flags;
        uint64_t chunks;
    } args = {context, list, count, 0, (uintptr_t)addresses};
    for (uint32_t i = 0; i < count; i++)
        addresses[i] = (uintptr_t)&chunks[i];
    int rc = call(node, NR_CS, &args, sizeof args);
    *sequence = args.context | (uint64_t)args.list << 32;
    return rc;
}

static int submit_ib(struct node *node, uint32_t context, struct ib ib, uint64_t *sequence)
{
    struct chunk chunk = {1, sizeof ib / 4, (uintptr_t)&ib};
    return submit(node, context, 0, &chunk, 1, sequence);
}

/* 0 done, 1 busy, -errno. */
static int wait_for(struct node *node, uint32_t context, uint32_t ip, uint64_t sequence, uint64_t timeout_ns)
{
    uint64_t now_ns = node->sys->ops->clock_ns(node->sys);
    struct {
        uint64_t sequence, until_ns;
        uint32_t ip, instance, ring, context;
    } args = {sequence, now_ns + timeout_ns, ip, 0, 0, context};
    int rc = call(node, NR_WAIT, &args, sizeof args);
    return rc ? rc : (int)args.sequence;
}

static uint32_t put(struct block *block, uint32_t at, const uint32_t *words, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        bw_wr32(&block->cpu, (at + i) * 4ull, words[i]);
    return count * 4;
}

/* WRITE_DATA of one word to memory, confirmed. */
#define WRITE(va, value) PM4(0x37, 4), 5u << 8 | 1u << 20, lo(va), hi(va), value

static void buffers_run_in_order_and_numbers_rise(void)
{
    struct node node;
    struct block code, data, page;
    uint64_t sequence;
    if (!node_plain(&node) || !block_make(&node, 4096, &code) || !block_make(&node, 4096, &data) ||
        !block_make(&node, 4096, &page))
        return;
    BW_EQ(node.sys->ops->open(node.sys, "/dev/kfd", O_RDWR), -ENOENT); /* and so no doorbell */
    for (uint32_t round = 1; round <= 40; round++) { /* more than the kernel keeps of one queue */
        const uint32_t first[] = {WRITE(data.va, round)}, second[] = {WRITE(data.va, round + 100)};
        struct ib ibs[2] = {{0, 0, code.va, 0, COMPUTE_IP, 0, 0},
                            {0, 0, code.va + 1024, 0, COMPUTE_IP, 0, 0}};
        uint32_t fence[2] = {page.handle, 64};
        struct chunk chunks[] = {
            {1, 8, (uintptr_t)&ibs[0]}, {1, 8, (uintptr_t)&ibs[1]}, {2, 2, (uintptr_t)fence}};
        ibs[0].bytes = put(&code, 0, first, 5);
        ibs[1].bytes = put(&code, 256, second, 5);
        BW_EQ(submit(&node, node.context, 0, chunks, 3, &sequence), 0);
        BW_EQ(sequence, round);
        BW_EQ(wait_for(&node, node.context, COMPUTE_IP, sequence, WAIT_NS), 0);
        BW_EQ(bw_rd32(&data.cpu, 0), round + 100);
        BW_EQ(bw_rd64(&page.cpu, 64), round);
    }
    BW_EQ(wait_for(&node, node.context, COMPUTE_IP, UINT64_MAX, 0), 0);
    BW_EQ(wait_for(&node, node.context, COMPUTE_IP, 41, 0), -EINVAL);
    BW_EQ(context_end(&node, node.context), 0);
    BW_EQ(wait_for(&node, node.context, COMPUTE_IP, 1, 0), -EINVAL);
    block_end(&node, &code);
    block_end(&node, &data);
    block_end(&node, &page);
    node_end(&node);
}

static void registers_are_not_ones_own(void)
{
    /* Without setting a register first: COPY_DATA of COMPUTE_NUM_THREAD_X to memory, twice. */
    struct node node;
    struct block code, data;
    uint64_t sequence;
    if (!node_plain(&node) || !block_make(&node, 4096, &code) || !block_make(&node, 4096, &data))
        return;
    const uint32_t set[] = {PM4(0x76, 2), 0x207, 77};
    const uint32_t get[] = {PM4(0x40, 5), 0u | 5u << 8 | 1u << 20, 0x2c00 + 0x207, 0, lo(data.va),
                            hi(data.va)};
    struct ib ib = {0, 0, code.va, put(&code, 0, set, 3), COMPUTE_IP, 0, 0};
    ib.bytes += put(&code, 3, get, 6);
    BW_EQ(submit_ib(&node, node.context, ib, &sequence), 0);
    BW_EQ(wait_for(&node, node.context, COMPUTE_IP, sequence, WAIT_NS), 0);
    BW_EQ(bw_rd32(&data.cpu, 0), 77);
    ib.va += 12;
    ib.bytes -= 12;
    BW_EQ(submit_ib(&node, node.context, ib, &sequence), 0);
    BW_EQ(wait_for(&node, node.context, COMPUTE_IP, sequence, WAIT_NS), 0);
    BW_TRUE(bw_rd32(&data.cpu, 0) != 77);
    block_end(&node, &code);
    block_end(&node, &data);
    node_end(&node);
}

static void bad_submissions_are_refused(void)
{
    struct node node;
    struct block code;
    uint64_t sequence;
    if (!node_plain(&node) || !block_make(&node, 8192, &code))
        return;
    const uint32_t nop[] = {PM4(0x10, 1), 0};
    uint32_t bytes = put(&code, 0, nop, 2);
    const struct {
        uint32_t context;
        struct ib ib;
        int code;
    } cases[] = {
        {9, {0, 0, code.va, bytes, COMPUTE_IP, 0, 0}, -EINVAL},
        {1, {0, 0, code.va, bytes, COMPUTE_IP, 0, 4}, -EINVAL},     /* rings 0 to 3 */
        {1, {0, 0, code.va, bytes, DMA_IP, 0, 2}, -EINVAL},         /* 0 and 1 */
        {1, {0, 0, code.va, bytes, COMPUTE_IP, 1, 0}, -EINVAL},     /* one instance */
        {1, {0, 0, code.va, bytes, 9, 0, 0}, -EINVAL},              /* no such block */
        {1, {0, 0, code.va + 2, bytes, COMPUTE_IP, 0, 0}, -EINVAL}, /* not on a word */
        {1, {0, 0, code.va + 16, bytes, DMA_IP, 0, 0}, -EINVAL},    /* not on 32 bytes */
        {1, {0, 0, code.va, 6, COMPUTE_IP, 0, 0}, -EINVAL},
        {1, {0, 0, code.va, 0, COMPUTE_IP, 0, 0}, -EINVAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!BW_EQ(submit_ib(&node, cases[i].context, cases[i].ib, &sequence), cases[i].code))
            printf("      case %zu\n", i);
    }
    struct ib good = {0, 0, code.va, bytes, COMPUTE_IP, 0, 0};
    uint32_t fence[2] = {code.handle, 0}, gone[2] = {99, 0};
    struct chunk chunks[] = {{1, 8, (uintptr_t)&good}, {42, 8, (uintptr_t)&good}};
    BW_EQ(submit(&node, 1, 0, chunks, 0, &sequence), -EINVAL);
    BW_EQ(submit(&node, 1, 0, chunks, 2, &sequence), -EINVAL); /* no such chunk */
    BW_EQ(submit(&node, 1, 5, chunks, 1, &sequence), -ENOENT); /* no such list */
    chunks[0].words = 7;
    BW_EQ(submit(&node, 1, 0, chunks, 1, &sequence), -EINVAL);
    chunks[0] = (struct chunk){1, 8, 16};
    BW_EQ(submit(&node, 1, 0, chunks, 1, &sequence), -EFAULT);
    chunks[0] = (struct chunk){2, 2, (uintptr_t)fence};
    BW_EQ(submit(&node, 1, 0, chunks, 1, &sequence), -EINVAL); /* user fence: a buffer of one page */
    chunks[0] = (struct chunk){2, 2, (uintptr_t)gone};
    BW_EQ(submit(&node, 1, 0, chunks, 1, &sequence), -EINVAL);
    block_end(&node, &code);
    node_end(&node);
}

static void bad_buffers_are_refused(void)
{
    struct node node;
    uint32_t handle, prime[3] = {0};
    if (!node_plain(&node))
        return;
    BW_EQ(create(&node, 0, DOMAIN_GTT, 0, &handle), -EINVAL);
    BW_EQ(create(&node, 4096, 0x100, 0, &handle), -EINVAL);
    BW_EQ(create(&node, 4096, DOMAIN_GTT, 1 << 8, &handle), -EINVAL);  /* the kernel's own */
    BW_EQ(create(&node, 128 << 20, DOMAIN_VRAM, 0, &handle), -ENOMEM); /* of 64 MiB */
    BW_EQ(create(&node, 8192, DOMAIN_VRAM, NO_CPU | ALWAYS_VALID, &handle), 0);
    uint64_t mmap_args = handle, va = 0x200000000ull;
    BW_EQ(call(&node, NR_MMAP, &mmap_args, 8), -EPERM);
    mmap_args = 77;
    BW_EQ(call(&node, NR_MMAP, &mmap_args, 8), -ENOENT);
    BW_EQ(place(&node, 77, 1, READABLE, va, 0, 4096), -ENOENT);
    BW_EQ(place(&node, handle, 1, READABLE, va, 0, 12288), -EINVAL); /* past its end */
    BW_EQ(place(&node, handle, 1, READABLE, va, 4096, 8192), -EINVAL);
    BW_EQ(place(&node, handle, 1, READABLE, va + 8, 0, 4096), -EINVAL);
    BW_EQ(place(&node, handle, 1, READABLE, 0x1000, 0, 4096), -EINVAL); /* the kernel's */
    BW_EQ(place(&node, handle, 1, READABLE, 0x7fffffffffffull - 4095 + 4096, 0, 4096), -EINVAL);
    BW_EQ(place(&node, handle, 1, 1u << 30, va, 0, 4096), -EINVAL);
    BW_EQ(place(&node, handle, 1, READABLE, va, 0, 8192), 0);
    BW_EQ(place(&node, handle, 1, READABLE, va + 4096, 0, 4096), -EINVAL); /* overlaps */
    BW_EQ(place(&node, handle, 2, READABLE, va + 4096, 0, 4096), -ENOENT);
    prime[0] = handle;
    BW_EQ(call(&node, NR_EXPORT, prime, sizeof prime), -EPERM); /* of one address space */
    BW_EQ(shut(&node, handle), 0);
    BW_EQ(shut(&node, handle), -EINVAL);
    struct {
        uint64_t address, size;
        uint32_t flags, handle;
    } user = {4096, 4096, 8, 0};
    BW_EQ(call(&node, NR_USERPTR, &user, sizeof user), -EFAULT);
    user.address = 5;
    BW_EQ(call(&node, NR_USERPTR, &user, sizeof user), -EINVAL);
    user.address = 4096;
    user.flags = 0;
    BW_EQ(call(&node, NR_USERPTR, &user, sizeof user), -EACCES);
    node_end(&node);
}

/* A job that reads what is not mapped: it fails, later ones of its context too, others go on. */
static void a_fault_makes_its_context_guilty(void)
{
    struct node node;
    struct block code, data;
    uint64_t sequence, fault[2] = {0};
    uint32_t other;
    if (!node_plain(&node) || !block_make(&node, 4096, &code) || !block_make(&node, 4096, &data) ||
        !BW_EQ(context_make(&node, &other), 0))
        return;
    const uint32_t bad[] = {WRITE(data.va + 4096, 1)}, good[] = {WRITE(data.va, 5)};
    struct ib ib = {0, 0, code.va, put(&code, 0, bad, 5), COMPUTE_IP, 0, 0};
    BW_EQ(context_flags(&node, node.context), 0);
    BW_EQ(submit_ib(&node, node.context, ib, &sequence), 0);
    BW_EQ(wait_for(&node, node.context, COMPUTE_IP, sequence, WAIT_NS), -ETIME);
    struct {
        uint64_t pointer;
        uint32_t size, query, parameter[4];
    } info = {(uintptr_t)fault, sizeof fault, 0x23, {0}};
    BW_EQ(call(&node, 0x45, &info, sizeof info), 0);
    BW_EQ(fault[0], data.va + 4096);
    BW_EQ(fault[1] & 0xf0, 0x50);                 /* not valid, a write */
    BW_EQ(context_flags(&node, node.context), 5); /* reset, guilty */
    BW_EQ(context_flags(&node, other), 0);
    ib.bytes = put(&code, 0, good, 5);
    BW_EQ(submit_ib(&node, node.context, ib, &sequence), -ECANCELED);
    BW_EQ(submit_ib(&node, other, ib, &sequence), 0);
    BW_EQ(wait_for(&node, other, COMPUTE_IP, sequence, WAIT_NS), 0);
    BW_EQ(bw_rd32(&data.cpu, 0), 5);
    block_end(&node, &code);
    block_end(&node, &data);
    node_end(&node);
}

/* Two contexts whose jobs meet on one of the two DMA rings: the first waits for what the one behind it would
 * write. Neither ends, as on a board; a wait with a deadline comes back. */
static void work_that_waits_for_work_behind_it_stands(void)
{
    struct node node;
    struct block code, data;
    uint32_t contexts[3];
    uint64_t first, second;
    if (!node_plain(&node) || !block_make(&node, 4096, &code) || !block_make(&node, 4096, &data))
        return;
    for (int i = 0; i < 3; i++)
        BW_EQ(context_make(&node, &contexts[i]), 0);
    /* POLL_REGMEM of memory until >= 1, and FENCE of 1. */
    const uint32_t poll[] = {
        8u | 5u << 28 | 1u << 31, lo(data.va), hi(data.va), 1, ~0u, 4u | 0xfffu << 16, 0, 0};
    const uint32_t fence[] = {5, lo(data.va), hi(data.va), 1, 0, 0, 0, 0}, rest[] = {0, 0, 0, 0, 0, 0, 0, 0};
    struct ib waits = {0, 0, code.va, put(&code, 0, poll, 8), DMA_IP, 0, 0};
    struct ib writes = {0, 0, code.va + 64, put(&code, 16, fence, 8), DMA_IP, 0, 0};
    struct ib idles = {0, 0, code.va + 128, put(&code, 32, rest, 8), DMA_IP, 0, 0};
    BW_EQ(submit_ib(&node, contexts[0], waits, &first), 0);
    BW_EQ(submit_ib(&node, contexts[1], idles, &second), 0); /* takes the other ring */
    BW_EQ(submit_ib(&node, contexts[2], writes, &second), 0);
    BW_EQ(wait_for(&node, contexts[0], DMA_IP, first, 50000000), 1);
    BW_EQ(wait_for(&node, contexts[2], DMA_IP, second, 0), 1);
    bw_wr32(&data.cpu, 0, 1); /* the host can still let it go on */
    BW_EQ(wait_for(&node, contexts[2], DMA_IP, second, WAIT_NS), 0);
    block_end(&node, &code);
    block_end(&node, &data);
    node_end(&node);
}

/* Memory of one GPU's file on the other GPU, and what is closed while work runs is not used again before it
 * is done. */
static void buffers_are_shared_and_kept(void)
{
    struct node node, other;
    struct block code, data;
    uint32_t handle, list[6] = {0, 0, 1, 8};
    struct {
        uint32_t handle, flags;
        int32_t fd;
    } prime = {0, O_RDWR | O_CLOEXEC, -1};
    uint64_t sequence, mmap_args;
    if (!node_plain(&node) || !block_make(&node, 4096, &data))
        return;
    other = node;
    other.fd = node.sys->ops->open(node.sys, "/dev/dri/renderD129", O_RDWR);
    BW_EQ(context_make(&other, &other.context), 0);
    BW_TRUE(block_make(&other, 4096, &code));
    BW_EQ(create(&node, 4096, DOMAIN_GTT, 0, &handle), 0);
    mmap_args = handle;
    BW_EQ(call(&node, NR_MMAP, &mmap_args, 8), 0);
    struct bw_region cpu;
    struct bw_map_request request = {
        .fd = node.fd, .offset = mmap_args, .size_bytes = 4096, .writable = true};
    BW_EQ(node.sys->ops->map(node.sys, &request, &cpu), 0);
    prime.handle = handle;
    BW_EQ(call(&node, NR_EXPORT, &prime, sizeof prime), 0);
    BW_EQ(call(&other, NR_IMPORT, &prime, sizeof prime), 0);
    BW_EQ(node.sys->ops->close(node.sys, prime.fd), 0);
    BW_EQ(place(&other, prime.handle, 1, READABLE | WRITEABLE, 0x300000000ull, 0, 4096), 0);
    uint32_t entry[2] = {prime.handle, 0};
    memcpy(&list[4], &(uint64_t){(uintptr_t)entry}, 8);
    BW_EQ(call(&other, NR_LIST, list, sizeof list), 0);
    BW_EQ(shut(&node, handle), 0); /* the other still holds it */
    const uint32_t write[] = {WRITE(0x300000000ull, 0x5eed)};
    struct ib ib = {0, 0, code.va, put(&code, 0, write, 5), COMPUTE_IP, 0, 0};
    struct chunk chunk = {1, 8, (uintptr_t)&ib};
    BW_EQ(submit(&other, other.context, list[0], &chunk, 1, &sequence), 0);
    BW_EQ(wait_for(&other, other.context, COMPUTE_IP, sequence, WAIT_NS), 0);
    BW_EQ(bw_rd32(&cpu, 0), 0x5eed);
    node.sys->ops->unmap(node.sys, &cpu);
    BW_EQ(shut(&other, prime.handle), 0);
    block_end(&other, &code);
    block_end(&node, &data);
    other.sys->ops->close(other.sys, other.fd);
    node_end(&node);
}

struct dependency {
    uint32_t ip, instance, ring, context;
    uint64_t sequence;
};

/* An IB that the kernel gives to a ring after another submission. */
static int submit_after(struct node *node, uint32_t context, struct ib ib, struct dependency dependency,
                        uint64_t *sequence)
{
    struct chunk chunks[] = {{3, sizeof dependency / 4, (uintptr_t)&dependency}, {1, 8, (uintptr_t)&ib}};
    return submit(node, context, 0, chunks, 2, sequence);
}

struct waiting {
    struct node node;
    struct block code, data;
    uint32_t other;
    struct ib polls, writes; /* DMA: until data word 0 is 1; compute: data word 1 = 5 */
};

static bool waiting_open(struct waiting *w)
{
    if (!node_plain(&w->node) || !block_make(&w->node, 4096, &w->code) ||
        !block_make(&w->node, 4096, &w->data) || !BW_EQ(context_make(&w->node, &w->other), 0))
        return false;
    const uint32_t poll[] = {
        8u | 5u << 28 | 1u << 31, lo(w->data.va), hi(w->data.va), 1, ~0u, 4u | 0xfffu << 16, 0, 0};
    const uint32_t write[] = {WRITE(w->data.va + 4, 5)};
    w->polls = (struct ib){0, 0, w->code.va, put(&w->code, 0, poll, 8), DMA_IP, 0, 0};
    w->writes = (struct ib){0, 0, w->code.va + 1024, put(&w->code, 256, write, 5), COMPUTE_IP, 0, 0};
    return true;
}

static void waiting_close(struct waiting *w)
{
    block_end(&w->node, &w->code);
    block_end(&w->node, &w->data);
    node_end(&w->node);
}

/* Not before, also what comes later on the same queue; other queues go on. */
static void a_submission_begins_after_others(void)
{
    struct waiting w;
    uint64_t first, second, third;
    uint32_t free_one;
    if (!waiting_open(&w) || !BW_EQ(context_make(&w.node, &free_one), 0))
        return;
    BW_EQ(submit_ib(&w.node, w.node.context, w.polls, &first), 0);
    BW_EQ(submit_after(&w.node, w.other, w.writes, (struct dependency){DMA_IP, 0, 0, w.node.context, first},
                       &second),
          0);
    BW_EQ(submit_ib(&w.node, w.other, w.writes, &third), 0);
    BW_EQ(wait_for(&w.node, w.other, COMPUTE_IP, third, 50000000), 1);
    BW_EQ(bw_rd32(&w.data.cpu, 4), 0);
    BW_EQ(submit_ib(&w.node, free_one, w.writes, &first), 0);
    BW_EQ(wait_for(&w.node, free_one, COMPUTE_IP, first, WAIT_NS), 0);
    bw_wr32(&w.data.cpu, 4, 0);
    bw_wr32(&w.data.cpu, 0, 1);
    BW_EQ(wait_for(&w.node, w.other, COMPUTE_IP, second, WAIT_NS), 0);
    BW_EQ(wait_for(&w.node, w.other, COMPUTE_IP, third, WAIT_NS), 0);
    BW_EQ(bw_rd32(&w.data.cpu, 4), 5);
    waiting_close(&w);
}

static void a_dependency_may_fail_or_go(void)
{
    struct waiting w;
    uint64_t first, second;
    if (!waiting_open(&w))
        return;
    BW_EQ(submit_ib(&w.node, w.node.context, w.polls, &first), 0);
    struct dependency dependency = {DMA_IP, 0, 0, w.node.context, first};
    BW_EQ(submit_after(&w.node, w.other, w.writes, dependency, &second), 0);
    BW_EQ(context_end(&w.node, w.node.context), 0); /* with what it was given */
    BW_EQ(wait_for(&w.node, w.other, COMPUTE_IP, second, WAIT_NS), 0);
    BW_EQ(bw_rd32(&w.data.cpu, 4), 5);
    bw_wr32(&w.data.cpu, 4, 0);
    BW_EQ(context_make(&w.node, &w.node.context), 0);
    const uint32_t bad[] = {WRITE(w.data.va + 4096, 1)};
    struct ib faults = {0, 0, w.code.va + 2048, put(&w.code, 512, bad, 5), COMPUTE_IP, 0, 0};
    BW_EQ(submit_ib(&w.node, w.node.context, faults, &first), 0);
    dependency = (struct dependency){COMPUTE_IP, 0, 0, w.node.context, first};
    BW_EQ(submit_after(&w.node, w.other, w.writes, dependency, &second), 0);
    BW_EQ(wait_for(&w.node, w.other, COMPUTE_IP, second, WAIT_NS), 0);
    BW_EQ(bw_rd32(&w.data.cpu, 4), 5);
    waiting_close(&w);
}

static void bad_dependencies_are_refused(void)
{
    struct waiting w;
    uint64_t first, second;
    if (!waiting_open(&w))
        return;
    const struct {
        struct dependency dependency;
        int code;
    } cases[] = {
        {{COMPUTE_IP, 0, 0, w.node.context, 2}, -EINVAL}, /* not given out yet */
        {{DMA_IP, 0, 0, w.node.context, 1}, -EINVAL},
        {{COMPUTE_IP, 0, 0, 9, 1}, -EINVAL}, /* no such context */
        {{COMPUTE_IP, 0, 4, w.node.context, 1}, -EINVAL},
        {{COMPUTE_IP, 1, 0, w.node.context, 1}, -EINVAL},
        {{COMPUTE_IP, 0, 0, w.node.context, 1}, 0},
        {{COMPUTE_IP, 0, 0, w.node.context, 0}, 0},
        {{COMPUTE_IP, 0, 0, w.node.context, UINT64_MAX}, 0}, /* the last one */
        {{DMA_IP, 0, 0, w.node.context, UINT64_MAX}, 0},     /* of none */
    };
    BW_EQ(submit_ib(&w.node, w.node.context, w.writes, &first), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!BW_EQ(submit_after(&w.node, w.other, w.writes, cases[i].dependency, &second), cases[i].code))
            printf("      case %zu\n", i);
    }
    BW_EQ(wait_for(&w.node, w.other, COMPUTE_IP, UINT64_MAX, WAIT_NS), 0);
    struct chunk chunks[] = {{3, 6, 16}, {1, 8, (uintptr_t)&w.writes}};
    BW_EQ(submit(&w.node, w.other, 0, chunks, 2, &second), -EFAULT);
    waiting_close(&w);
}

enum { NR_SYNCOBJ_CREATE = 0xbf, NR_SYNCOBJ_DESTROY, NR_SYNCOBJ_EXPORT, NR_SYNCOBJ_IMPORT };

struct point {
    uint32_t handle, flags;
    uint64_t value;
};

/* An IB with a chunk of one point: 8 waits for it, 9 signals it. */
static int submit_point(struct node *node, uint32_t context, struct ib ib, uint32_t chunk, uint32_t handle,
                        uint64_t value, uint64_t *sequence)
{
    struct point point = {handle, 0, value};
    struct chunk chunks[] = {{1, 8, (uintptr_t)&ib}, {chunk, sizeof point / 4, (uintptr_t)&point}};
    return submit(node, context, 0, chunks, 2, sequence);
}

/* A timeline that one GPU's jobs signal and another one's wait for, in the order of its points. */
static void a_timeline_goes_from_gpu_to_gpu(void)
{
    enum { WAIT = 8, SIGNAL = 9 };
    struct waiting w;
    struct node other;
    struct block code;
    uint64_t first, second;
    uint32_t made[2] = {0}, theirs;
    struct {
        uint32_t handle, flags;
        int32_t fd;
        uint32_t pad;
    } shared = {0};
    if (!waiting_open(&w))
        return;
    other = w.node;
    other.fd = w.node.sys->ops->open(w.node.sys, "/dev/dri/renderD129", O_RDWR);
    if (!BW_EQ(context_make(&other, &other.context), 0) || !block_make(&other, 4096, &code))
        return;
    const uint32_t write[] = {WRITE(code.va + 2048, 7)};
    struct ib writes = {0, 0, code.va, put(&code, 0, write, 5), COMPUTE_IP, 0, 0};
    BW_EQ(call(&w.node, NR_SYNCOBJ_CREATE, made, sizeof made), 0);
    shared.handle = made[0];
    BW_EQ(call(&w.node, NR_SYNCOBJ_EXPORT, &shared, sizeof shared), 0);
    shared.handle = 0;
    BW_EQ(call(&other, NR_SYNCOBJ_IMPORT, &shared, sizeof shared), 0);
    theirs = shared.handle;
    BW_EQ(w.node.sys->ops->close(w.node.sys, shared.fd), 0);
    BW_EQ(call(&other, NR_SYNCOBJ_IMPORT, &shared, sizeof shared), -EINVAL); /* closed */

    BW_EQ(submit_point(&other, other.context, writes, WAIT, theirs, 1, &second), -EINVAL); /* nobody's yet */
    BW_EQ(submit_point(&other, other.context, writes, WAIT, 77, 1, &second), -ENOENT);
    BW_EQ(submit_point(&w.node, w.node.context, w.polls, SIGNAL, 77, 1, &first), -EINVAL);
    BW_EQ(submit_point(&w.node, w.node.context, w.polls, SIGNAL, made[0], 5, &first), 0);
    BW_EQ(submit_point(&w.node, w.other, w.writes, SIGNAL, made[0], 5, &first), -EINVAL); /* no progress */
    BW_EQ(submit_point(&w.node, w.other, w.writes, SIGNAL, made[0], 6, &first), 0);
    BW_EQ(wait_for(&w.node, w.other, COMPUTE_IP, first, WAIT_NS), 0);
    /* Point 6 is signalled, but 5 comes before it; 3 is what 5 covers. */
    BW_EQ(submit_point(&other, other.context, writes, WAIT, theirs, 3, &second), 0);
    BW_EQ(wait_for(&other, other.context, COMPUTE_IP, second, 50000000), 1);
    BW_EQ(bw_rd32(&code.cpu, 2048), 0);
    uint32_t gone[2] = {made[0], 0}, gone_there[2] = {theirs, 0};
    BW_EQ(call(&w.node, NR_SYNCOBJ_DESTROY, gone, sizeof gone), 0);
    BW_EQ(call(&w.node, NR_SYNCOBJ_DESTROY, gone, sizeof gone), -EINVAL);
    BW_EQ(call(&other, NR_SYNCOBJ_DESTROY, gone_there, sizeof gone_there), 0); /* the jobs hold it */
    bw_wr32(&w.data.cpu, 0, 1);
    BW_EQ(wait_for(&other, other.context, COMPUTE_IP, second, WAIT_NS), 0);
    BW_EQ(bw_rd32(&code.cpu, 2048), 7);
    block_end(&other, &code);
    other.sys->ops->close(other.sys, other.fd);
    waiting_close(&w);
}

BW_TEST_MAIN("mock.drm_submit", {"a timeline goes from GPU to GPU", a_timeline_goes_from_gpu_to_gpu},
             {"a submission begins after others", a_submission_begins_after_others},
             {"a dependency may fail or go", a_dependency_may_fail_or_go},
             {"bad dependencies are refused", bad_dependencies_are_refused},
             {"buffers run in order and numbers rise", buffers_run_in_order_and_numbers_rise},
             {"registers are not one's own", registers_are_not_ones_own},
             {"bad submissions are refused", bad_submissions_are_refused},
             {"bad buffers are refused", bad_buffers_are_refused},
             {"a fault makes its context guilty", a_fault_makes_its_context_guilty},
             {"work that waits for work behind it stands", work_that_waits_for_work_behind_it_stands},
             {"buffers are shared and kept", buffers_are_shared_and_kept})
