/* Memory through the KFD: limits, handles, mappings, user memory, and what is refused. */
#include <sys/mman.h>

#include "tests/unit/mock/client.h"

static uint64_t available(struct client *c)
{
    struct {
        uint64_t bytes;
        uint32_t gpu_id, pad;
    } args = {0, c->gpu_id, 0};
    BW_EQ(client_ioctl(c, 0x23, &args, sizeof args), 0);
    return args.bytes;
}

static int alloc_raw(struct client *c, uint64_t va, uint64_t size, uint32_t flags, uint64_t user,
                     struct alloc_args *args)
{
    *args =
        (struct alloc_args){.va = va, .size = size, .mmap_offset = user, .gpu_id = c->gpu_id, .flags = flags};
    return client_ioctl(c, 0x16, args, sizeof *args);
}

static bool error_is(struct client *c, const char *text)
{
    char error[512];
    bw_mock_last_error(c->sys, error, sizeof error);
    return strstr(error, text) ? true : bw_check_str(error, text, "last error", __FILE__, __LINE__);
}

static void vram_runs_out_and_comes_back(void)
{
    struct client c;
    struct memory m[4], whole;
    enum { MIB = 1 << 20 };
    struct bw_mock_config config = {
        .size = sizeof config, .arch = "gfx1100", .vram_bytes = 64 * MIB, .threads = 1};
    if (!client_open_config(&c, &config))
        return;
    BW_EQ(available(&c), 64 * MIB);
    for (int i = 0; i < 4; i++)
        BW_EQ(memory_create(&c, 16 * MIB, VRAM, &m[i]), 0);
    BW_EQ(available(&c), 0);
    BW_EQ(memory_create(&c, 1, VRAM, &whole), -ENOMEM);
    error_is(&c, "0x1000 bytes of VRAM, 0x0 are free");
    BW_EQ(memory_destroy(&c, &m[1]), 0);
    BW_EQ(memory_destroy(&c, &m[3]), 0);
    BW_EQ(available(&c), 32 * MIB);
    /* two holes that do not touch still hold one large buffer: a GPU's memory need not be contiguous */
    BW_EQ(memory_create(&c, 32 * MIB, VRAM, &whole), 0);
    BW_EQ(memory_create(&c, PAGE, GTT, &m[1]), 0);
    BW_EQ(available(&c), 0);
    client_close(&c);
}

static void bad_allocations_are_refused(void)
{
    struct client c;
    struct alloc_args args;
    if (!client_open(&c))
        return;
    const uint64_t va = c.next_va;
    BW_EQ(alloc_raw(&c, va, 0, VRAM | RWX, 0, &args), -EINVAL);
    BW_EQ(alloc_raw(&c, va, PAGE, RWX, 0, &args), -EINVAL);
    BW_EQ(alloc_raw(&c, va, PAGE, VRAM | GTT | RWX, 0, &args), -EINVAL);
    BW_EQ(alloc_raw(&c, va, PAGE, VRAM | 1u << 10, 0, &args), -EINVAL);
    BW_EQ(alloc_raw(&c, va + 12, PAGE, VRAM | RWX, 0, &args), -EINVAL);
    BW_EQ(alloc_raw(&c, va, UINT64_MAX - 100, VRAM | RWX, 0, &args), -ENOMEM);
    BW_EQ(alloc_raw(&c, va, 1ull << 40, GTT | RWX, 0, &args), -ENOMEM);
    BW_EQ(alloc_raw(&c, va, PAGE, 1u << 3, 0, &args), -EINVAL); /* doorbells are two pages */
    BW_EQ(alloc_raw(&c, va, PAGE, USER | RWX, 0, &args), -EINVAL);
    BW_EQ(alloc_raw(&c, va, PAGE, USER | RWX, 0x10000123, &args), -EINVAL);
    void *readable = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BW_EQ(alloc_raw(&c, va, PAGE, USER | RWX, (uintptr_t)readable, &args), -EFAULT);
    mprotect(readable, PAGE, PROT_READ | PROT_WRITE);
    BW_EQ(alloc_raw(&c, va, 2 * PAGE, USER | RWX, (uintptr_t)readable, &args), -EFAULT);
    BW_EQ(alloc_raw(&c, va, PAGE, USER | RWX, (uintptr_t)readable, &args), 0);
    munmap(readable, 2 * PAGE);
    c.gpu_id ^= 1;
    BW_EQ(alloc_raw(&c, va, PAGE, VRAM | RWX, 0, &args), -EINVAL);
    c.gpu_id ^= 1;
    client_close(&c);
}

static void mapping_rules(void)
{
    struct client c;
    struct memory m;
    struct alloc_args overlap, high;
    if (!client_open(&c) || !BW_EQ(memory_create(&c, 4 * PAGE, GTT, &m), 0))
        return;
    struct map_args map = {.handle = m.handle, .ids = (uintptr_t)&c.gpu_id, .count = 1};
    BW_EQ(client_ioctl(&c, 0x18, &map, sizeof map), 0); /* again: done already */
    BW_EQ(map.done, 1);
    BW_EQ(client_ioctl(&c, 0x17, &m.handle, 8), -EBUSY);
    error_is(&c, "is still mapped");
    BW_EQ(alloc_raw(&c, m.va + 2 * PAGE, 4 * PAGE, VRAM | RWX, 0, &overlap), 0);
    map = (struct map_args){.handle = overlap.handle, .ids = (uintptr_t)&c.gpu_id, .count = 1};
    BW_EQ(client_ioctl(&c, 0x18, &map, sizeof map), -EINVAL);
    error_is(&c, "overlaps another mapping");
    BW_EQ(alloc_raw(&c, 0x800000000000ull, PAGE, VRAM | RWX, 0, &high), 0);
    map.handle = high.handle;
    BW_EQ(client_ioctl(&c, 0x18, &map, sizeof map), -EINVAL);
    map.count = 0;
    BW_EQ(client_ioctl(&c, 0x18, &map, sizeof map), -EINVAL);
    map.count = 1;
    map.done = 2;
    BW_EQ(client_ioctl(&c, 0x18, &map, sizeof map), -EINVAL);
    map = (struct map_args){.handle = m.handle, .ids = (uintptr_t)&c.gpu_id, .count = 1};
    BW_EQ(client_ioctl(&c, 0x19, &map, sizeof map), 0);
    map.done = 0;
    BW_EQ(client_ioctl(&c, 0x19, &map, sizeof map), -EINVAL);
    uint64_t unknown = m.handle + 100;
    BW_EQ(client_ioctl(&c, 0x17, &unknown, 8), -EINVAL);
    BW_EQ(client_ioctl(&c, 0x17, &m.handle, 8), 0);
    BW_EQ(client_ioctl(&c, 0x17, &m.handle, 8), -EINVAL);
    client_close(&c);
}

static void cpu_mappings(void)
{
    struct client c;
    struct memory m, hidden;
    struct alloc_args args;
    struct bw_region region;
    if (!client_open(&c) || !BW_EQ(memory_create(&c, 2 * PAGE, GTT, &m), 0) ||
        !BW_EQ(memory_create(&c, PAGE, VRAM, &hidden), 0))
        return;
    const struct bw_sys_ops *ops = c.sys->ops;
    BW_EQ(alloc_raw(&c, c.next_va, PAGE, VRAM | RWX, 0, &args), 0);
    struct bw_map_request request = {
        .fd = c.render, .offset = args.mmap_offset, .size_bytes = PAGE, .writable = true};
    BW_EQ(ops->map(c.sys, &request, &region), -EPERM);
    error_is(&c, "is not PUBLIC");
    request.offset += PAGE;
    BW_EQ(ops->map(c.sys, &request, &region), -EINVAL);
    /* at a fixed address, over a reservation; memory outlives the handle while it is mapped */
    struct bw_region reserved;
    request = (struct bw_map_request){.fd = -1, .size_bytes = 16 * PAGE, .reserve = true};
    if (!BW_EQ(ops->map(c.sys, &request, &reserved), 0))
        return;
    BW_EQ(alloc_raw(&c, (uintptr_t)reserved.base + PAGE, PAGE, GTT | RWX, 0, &args), 0);
    request = (struct bw_map_request){.fd = c.render,
                                      .offset = args.mmap_offset,
                                      .size_bytes = PAGE,
                                      .writable = true,
                                      .fixed_address = (uintptr_t)reserved.base + PAGE};
    BW_EQ(ops->map(c.sys, &request, &region), 0);
    BW_EQ((uintptr_t)region.base, (uintptr_t)reserved.base + PAGE);
    bw_wr32(&region, 8, 0x1234);
    BW_EQ(client_ioctl(&c, 0x17, &args.handle, 8), 0);
    struct memory later;
    BW_EQ(memory_create(&c, PAGE, GTT, &later), 0);
    memset(later.cpu, 0xff, PAGE);
    BW_EQ(bw_rd32(&region, 8), 0x1234);
    BW_EQ(ops->unmap(c.sys, &region), 0);
    BW_EQ(ops->unmap(c.sys, &reserved), 0);
    client_close(&c);
}

static void user_memory_is_the_programs_own(void)
{
    struct client c;
    struct queue q;
    struct memory m;
    struct bw_region user;
    struct alloc_args args;
    if (!client_open(&c) || !queue_create(&c, SDMA, &q) || !BW_EQ(memory_create(&c, PAGE, GTT, &m), 0))
        return;
    struct bw_map_request request = {.fd = -1, .size_bytes = PAGE, .writable = true};
    if (!BW_EQ(c.sys->ops->map(c.sys, &request, &user), 0))
        return;
    uint64_t va = (uintptr_t)user.base;
    BW_EQ(alloc_raw(&c, va, PAGE, USER | RWX, va, &args), 0);
    struct map_args map = {.handle = args.handle, .ids = (uintptr_t)&c.gpu_id, .count = 1};
    BW_EQ(client_ioctl(&c, 0x18, &map, sizeof map), 0);
    queue_submit(&c, &q, (const uint32_t[]){5, lo(va + 4), hi(va), 0xfeed, 5, lo(m.va), hi(m.va), 1}, 8);
    BW_TRUE(wait_word(&c, m.cpu, 1));
    BW_EQ(bw_rd32(&user, 4), 0xfeed);
    /* unmapped by the program: the GPU faults, nobody crashes */
    BW_EQ(c.sys->ops->unmap(c.sys, &user), 0);
    queue_submit(&c, &q, (const uint32_t[]){5, lo(va + 4), hi(va), 0xfeed}, 4);
    wait_error(&c, "FENCE at ring offset 0x20: memory fault");
    map.done = 0;
    BW_EQ(client_ioctl(&c, 0x19, &map, sizeof map), 0);
    BW_EQ(client_ioctl(&c, 0x17, &args.handle, 8), 0);
    client_close(&c);
}

static void read_only_memory_is_read_only(void)
{
    struct client c;
    struct queue q;
    struct memory m;
    struct alloc_args args;
    struct create_event_args event;
    struct event_data data;
    uint32_t result;
    if (!client_open(&c) || !queue_create(&c, SDMA, &q) || !BW_EQ(memory_create(&c, PAGE, GTT, &m), 0) ||
        !BW_EQ(event_create(&c, 8, true, &event), 0))
        return;
    BW_EQ(alloc_raw(&c, c.next_va, PAGE, GTT, 0, &args), 0);
    struct map_args map = {.handle = args.handle, .ids = (uintptr_t)&c.gpu_id, .count = 1};
    BW_EQ(client_ioctl(&c, 0x18, &map, sizeof map), 0);
    queue_submit(&c, &q, (const uint32_t[]){1, 63, 0, lo(args.va), hi(args.va), lo(m.va), hi(m.va)}, 7);
    queue_submit(&c, &q, (const uint32_t[]){5, lo(args.va + 8), hi(args.va), 1}, 4);
    BW_EQ(event_wait(&c, event.id, 20000, &data, &result), 0);
    BW_EQ(result, 0);
    BW_EQ(data.memory.va, args.va);
    BW_EQ(data.memory.read_only, 1);
    BW_EQ(data.memory.not_present, 0);
    error_is(&c, "write of protected memory");
    client_close(&c);
}

static void new_vram_is_not_zero(void)
{
    struct client c;
    struct memory m;
    if (!client_open(&c) || !BW_EQ(memory_create(&c, PAGE, VRAM | PUBLIC, &m), 0))
        return;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < PAGE / 8; i++)
        sum |= ((uint64_t *)m.cpu)[i];
    BW_EQ(sum, UINT64_MAX);
    client_close(&c);
}

BW_TEST_MAIN("mock.memory", {"VRAM runs out and comes back", vram_runs_out_and_comes_back},
             {"bad allocations are refused", bad_allocations_are_refused}, {"mapping rules", mapping_rules},
             {"CPU mappings", cpu_mappings},
             {"user memory is the program's own", user_memory_is_the_programs_own},
             {"read-only memory is read-only", read_only_memory_is_read_only},
             {"new VRAM is not zero", new_vram_is_not_zero})
