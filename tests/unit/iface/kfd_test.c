/* Goal: the KFD interface on the mock kernel driver: topology, memory of each kind, peers, and what it
 * refuses. */
#include <errno.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "tests/kfd_fixture.h"
#include "tests/seed.h"

static void properties_come_from_the_topology(void)
{
    struct kfd_fixture f;
    if (!fixture_open(&f, "gfx1100"))
        return;
    const struct bw_iface_properties *p = &f.iface->properties;
    BW_STR(f.iface->ops->name, "kfd");
    BW_STR(p->node_name, "kfd node 1");
    BW_TRUE(strstr(p->product, "Radeon") != NULL);
    BW_EQ(p->gfx_version, 110000);
    BW_EQ(p->vendor_id, 0x1002);
    BW_EQ(p->device_id, 0x744c);
    BW_EQ(p->simd_count / p->simd_per_cu, 96);
    BW_EQ(p->shader_engines, 6);
    BW_EQ(p->wave_size, 32);
    BW_EQ(p->lds_bytes, 65536);
    BW_EQ(p->xcc_count, 1);
    BW_TRUE(p->vram_bytes > 20ull << 30);
    BW_EQ(p->timestamp_hz, 100000000);
    BW_TRUE(p->lds_aperture && p->scratch_aperture && p->lds_aperture != p->scratch_aperture);
    fixture_close(&f);
}

static int count_gpu(void *user, const struct bw_iface_listing *listing)
{
    ++*(int *)user;
    BW_STR(listing->why, "");
    BW_EQ(listing->properties.gfx_version, 90402);
    BW_EQ(listing->properties.xcc_count, 8);
    return 0;
}

static void eight_gpus_are_listed_and_opened_by_index(void)
{
    struct kfd_fixture f;
    struct bw_iface *ifaces[8], *none;
    struct bw_err err = {0};
    int count = 0;
    if (!fixture_machine(&f, "gfx942", 8, 1 << 30))
        return;
    BW_EQ(bw_kfd_list(f.sys, count_gpu, &count, &err), 8);
    BW_EQ(count, 8);
    for (uint32_t i = 0; i < 8; i++) {
        BW_OK(bw_kfd_open(f.sys, i, &ifaces[i], &err), &err);
        BW_EQ(ifaces[i]->properties.vram_bytes, 1 << 30);
        for (uint32_t k = 0; k < i; k++)
            BW_TRUE(ifaces[i]->properties.gpu_id != ifaces[k]->properties.gpu_id);
    }
    BW_EQ(bw_kfd_open(f.sys, 8, &none, &err), -ENODEV);
    BW_STR(err.expected, "0 to 7");
    for (uint32_t i = 0; i < 8; i++)
        ifaces[i]->ops->close(ifaces[i]);
    fixture_close(&f);
}

static void links_come_from_the_topology(void)
{
    static const struct {
        const char *arch;
        uint64_t bar_bytes;
        enum bw_iface_link_kind kind;
        uint32_t weight, bandwidth;
    } cases[] = {
        {"gfx942", 0, BW_IFACE_LINK_XGMI, 15, 64000},
        {"gfx942", 256 << 20, BW_IFACE_LINK_XGMI, 15, 64000}, /* a hive needs no BAR */
        {"gfx1100", 0, BW_IFACE_LINK_PCIE, 40, 31504},
        {"gfx1100", 256 << 20, BW_IFACE_LINK_NONE, 0, 0},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_mock_config config = {.size = sizeof config,
                                        .arch = cases[i].arch,
                                        .gpu_count = 2,
                                        .vram_bytes = 1 << 30,
                                        .bar_bytes = cases[i].bar_bytes,
                                        .threads = 1};
        struct bw_sys *sys;
        struct bw_iface *from, *to;
        struct bw_iface_link link;
        struct bw_iface_memory memory;
        struct bw_err err = {0};
        BW_OK(bw_mock_kfd_create(&config, &sys, &err), &err);
        BW_OK(bw_kfd_open(sys, 0, &from, &err), &err);
        BW_OK(bw_kfd_open(sys, 1, &to, &err), &err);
        BW_EQ(to->properties.vram_bytes, 1 << 30);
        BW_EQ(to->properties.visible_vram_bytes, cases[i].bar_bytes ? cases[i].bar_bytes : 1 << 30);
        BW_OK(from->ops->link(from, to, &link, &err), &err);
        BW_EQ(link.kind, cases[i].kind);
        BW_EQ(link.weight, cases[i].weight);
        BW_EQ(link.bandwidth_mb_per_s, cases[i].bandwidth);
        BW_OK(to->ops->alloc(to, 4096, BW_IFACE_VRAM, 0, &memory, &err), &err);
        int rc = from->ops->map_peer(from, to, &memory, &err);
        BW_EQ(rc, cases[i].kind == BW_IFACE_LINK_NONE ? -EOPNOTSUPP : 0);
        if (rc) {
            BW_STR(err.what, "kfd node 1 cannot reach the VRAM of kfd node 2");
            BW_STR(err.observed, "a BAR of 256 MiB for 1024 MiB");
        }
        BW_OK(to->ops->free(to, &memory, &err), &err);
        from->ops->close(from);
        to->ops->close(to);
        bw_sys_destroy(sys);
    }
}

static void memory_of_each_kind(void)
{
    static const struct {
        uint32_t flags;
        bool visible;
        enum bw_memory_type type;
    } kinds[] = {
        {BW_IFACE_VRAM, false, BW_MEMORY_CACHED},
        {BW_IFACE_VRAM | BW_IFACE_EXECUTABLE, false, BW_MEMORY_CACHED},
        {BW_IFACE_VRAM | BW_IFACE_CPU_VISIBLE, true, BW_MEMORY_WRITE_COMBINED},
        {BW_IFACE_HOST, true, BW_MEMORY_CACHED},
        {BW_IFACE_HOST | BW_IFACE_UNCACHED, true, BW_MEMORY_CACHED},
        {BW_IFACE_HOST | BW_IFACE_EXECUTABLE | BW_IFACE_AQL_QUEUE, true, BW_MEMORY_CACHED},
    };
    static const uint64_t sizes[] = {1, 4096, 4097, 2 << 20, (2 << 20) + 1, 64 << 20};
    struct kfd_fixture f;
    if (!fixture_open(&f, "gfx1100"))
        return;
    for (size_t kind = 0; kind < BW_COUNT_OF(kinds); kind++) {
        for (size_t i = 0; i < BW_COUNT_OF(sizes); i++) {
            struct bw_iface_memory memory;
            struct bw_err err = {0};
            if (!BW_OK(f.iface->ops->alloc(f.iface, sizes[i], kinds[kind].flags, 0, &memory, &err), &err))
                continue;
            BW_EQ(memory.size_bytes, bw_align_up(sizes[i], 4096));
            BW_EQ(memory.gpu_va % (sizes[i] >= 2 << 20 ? 2 << 20 : 4096), 0);
            BW_EQ(memory.flags, kinds[kind].flags);
            BW_EQ(memory.cpu.size_bytes, kinds[kind].visible ? memory.size_bytes : 0);
            if (kinds[kind].visible) {
                BW_EQ((uint64_t)(uintptr_t)memory.cpu.base, memory.gpu_va);
                BW_EQ(memory.cpu.memory_type, kinds[kind].type);
                bw_wr64(&memory.cpu, memory.size_bytes - 8, 0x123456789abcdef0);
                BW_EQ(bw_rd64(&memory.cpu, memory.size_bytes - 8), 0x123456789abcdef0);
            }
            BW_OK(f.iface->ops->free(f.iface, &memory, &err), &err);
            BW_EQ(memory.size_bytes, 0);
        }
    }
    fixture_close(&f);
}

static void user_memory_is_mapped_where_it_is(void)
{
    struct kfd_fixture f;
    struct bw_iface_memory memory, again;
    struct bw_err err = {0};
    if (!fixture_open(&f, "gfx1100"))
        return;
    char *pages = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t at = (uint64_t)(uintptr_t)pages;
    memset(pages, 1, 16384);
    BW_OK(f.iface->ops->alloc(f.iface, 5000, BW_IFACE_USER_POINTER, at, &memory, &err), &err);
    BW_EQ(memory.gpu_va, at);
    BW_EQ(memory.size_bytes, 8192);
    BW_EQ((uint64_t)(uintptr_t)memory.cpu.base, at);
    BW_EQ(f.iface->ops->alloc(f.iface, 4096, BW_IFACE_USER_POINTER, at + 4096, &again, &err), -EEXIST);
    BW_TRUE(strstr(err.hint, "mapped for the GPU already") != NULL);
    BW_OK(f.iface->ops->alloc(f.iface, 4096, BW_IFACE_USER_POINTER, at + 8192, &again, &err), &err);
    BW_OK(f.iface->ops->free(f.iface, &again, &err), &err);
    BW_OK(f.iface->ops->free(f.iface, &memory, &err), &err);
    BW_EQ(pages[0], 1); /* still the caller's */
    BW_EQ(f.iface->ops->alloc(f.iface, 4096, BW_IFACE_USER_POINTER, at + 1, &memory, &err), -EINVAL);
    munmap(pages, 16384);
    /* The kernel cannot pin what is not there. */
    BW_EQ(f.iface->ops->alloc(f.iface, 4096, BW_IFACE_USER_POINTER, at, &memory, &err), -EFAULT);
    fixture_close(&f);
}

static void what_makes_no_sense_is_refused(void)
{
    static const struct {
        uint64_t size, cpu;
        uint32_t flags;
    } cases[] = {
        {0, 0, BW_IFACE_VRAM},
        {4096, 0, 0},
        {4096, 0, BW_IFACE_VRAM | BW_IFACE_HOST},
        {4096, 0, BW_IFACE_UNCACHED},
        {4096, 4096, BW_IFACE_VRAM},
        {4096, 0, BW_IFACE_USER_POINTER},
        {UINT64_MAX, 0, BW_IFACE_VRAM},
        {(1ull << 47) + 1, 0, BW_IFACE_HOST},
        {8192, UINT64_MAX - 4095, BW_IFACE_USER_POINTER},
    };
    struct kfd_fixture f;
    if (!fixture_open(&f, "gfx1100"))
        return;
    uint64_t calls = f.sys->calls;
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_iface_memory memory;
        struct bw_err err = {0};
        BW_EQ(f.iface->ops->alloc(f.iface, cases[i].size, cases[i].flags, cases[i].cpu, &memory, &err),
              -EINVAL);
        BW_STR(err.subsystem, "kfd");
    }
    BW_EQ(f.sys->calls, calls); /* without troubling the kernel */
    fixture_close(&f);
}

/* S10: small VRAM runs out, says so, and goes on once something is freed. */
static void vram_runs_out_and_comes_back(void)
{
    enum { PIECE = 4 << 20, PIECES = 64 };
    struct kfd_fixture f;
    struct bw_iface_memory pieces[PIECES];
    struct bw_err err = {0};
    uint64_t before, after;
    int count = 0, again = 0;
    if (!fixture_machine(&f, "gfx1100", 1, 128 << 20) || !BW_OK(bw_kfd_open(f.sys, 0, &f.iface, &err), &err))
        return;
    BW_OK(f.iface->ops->available_memory(f.iface, &before, &err), &err);
    while (count < PIECES && !f.iface->ops->alloc(f.iface, PIECE, BW_IFACE_VRAM, 0, &pieces[count], &err))
        count++;
    BW_EQ(err.code, -ENOMEM);
    BW_TRUE(strstr(err.what, "4194304 bytes of VRAM") != NULL);
    BW_TRUE(count >= 16 && count <= 32);
    BW_OK(f.iface->ops->available_memory(f.iface, &after, &err), &err);
    BW_TRUE(after < PIECE && before - after >= (uint64_t)count * PIECE);
    for (int i = 0; i < count; i++)
        BW_OK(f.iface->ops->free(f.iface, &pieces[i], &err), &err);
    BW_OK(f.iface->ops->available_memory(f.iface, &after, &err), &err);
    BW_EQ(after, before);
    while (again < count && !f.iface->ops->alloc(f.iface, PIECE, BW_IFACE_VRAM, 0, &pieces[again], &err))
        again++;
    BW_EQ(again, count);
    for (int i = 0; i < again; i++)
        BW_OK(f.iface->ops->free(f.iface, &pieces[i], &err), &err);
    fixture_close(&f);
}

/* Host memory that was mapped on the CPU is given back to the kernel as well. */
static void host_memory_does_not_leak(void)
{
    struct kfd_fixture f;
    struct bw_err err = {0};
    if (!fixture_open(&f, "gfx1100"))
        return;
    for (int i = 0; i < 400; i++) {
        struct bw_iface_memory memory;
        if (!BW_OK(f.iface->ops->alloc(f.iface, 1ull << 30, BW_IFACE_HOST, 0, &memory, &err), &err))
            break;
        bw_wr32(&memory.cpu, 0, 1);
        if (!BW_OK(f.iface->ops->free(f.iface, &memory, &err), &err))
            break;
    }
    fixture_close(&f);
}

static void peers_share_addresses_and_strangers_do_not(void)
{
    struct kfd_fixture f, stranger;
    struct bw_iface *peer = NULL;
    struct bw_iface_memory memory;
    struct bw_err err = {0};
    if (!fixture_machine(&f, "gfx942", 2, 1 << 30) || !fixture_open(&stranger, "gfx942"))
        return;
    BW_OK(bw_kfd_open(f.sys, 0, &f.iface, &err), &err);
    BW_OK(bw_kfd_open(f.sys, 1, &peer, &err), &err);
    BW_OK(f.iface->ops->alloc(f.iface, 65536, BW_IFACE_VRAM, 0, &memory, &err), &err);
    BW_OK(peer->ops->map_peer(peer, f.iface, &memory, &err), &err);
    BW_OK(peer->ops->map_peer(peer, f.iface, &memory, &err), &err); /* twice is fine */
    BW_EQ(stranger.iface->ops->map_peer(stranger.iface, f.iface, &memory, &err), -EOPNOTSUPP);
    BW_OK(f.iface->ops->free(f.iface, &memory, &err), &err); /* from both GPUs */
    peer->ops->close(peer);
    fixture_close(&f);
    fixture_close(&stranger);
}

static void a_gpu_opened_twice_shares_its_address_space(void)
{
    struct kfd_fixture f;
    struct bw_iface *second = NULL;
    struct bw_iface_memory a, b;
    struct bw_err err = {0};
    if (!fixture_open(&f, "gfx1100"))
        return;
    BW_OK(bw_kfd_open(f.sys, 0, &second, &err), &err);
    BW_OK(f.iface->ops->alloc(f.iface, 4096, BW_IFACE_HOST, 0, &a, &err), &err);
    BW_OK(second->ops->alloc(second, 4096, BW_IFACE_HOST, 0, &b, &err), &err);
    BW_TRUE(a.gpu_va != b.gpu_va);
    BW_OK(second->ops->free(second, &b, &err), &err);
    second->ops->close(second);
    bw_wr32(&a.cpu, 0, 5);
    BW_OK(f.iface->ops->free(f.iface, &a, &err), &err);
    /* Opened again after the last was closed: the kernel lets only the first descriptor have the address
     * space. */
    f.iface->ops->close(f.iface);
    f.iface = NULL;
    BW_OK(bw_kfd_open(f.sys, 0, &f.iface, &err), &err);
    fixture_close(&f);
}

static void addresses_are_reused_and_never_shared(void)
{
    enum { LIVE = 40 };
    struct kfd_fixture f;
    struct bw_iface_memory live[LIVE] = {{0}};
    struct bw_err err = {0};
    if (!fixture_open(&f, "gfx1100"))
        return;
    struct bw_rng rng = bw_test_rng("kfd");
    uint64_t lowest = UINT64_MAX, highest = 0;
    for (int step = 0; step < 2000; step++) {
        struct bw_iface_memory *memory = &live[bw_rng_below(&rng, LIVE)];
        if (memory->size_bytes) {
            if (memory->cpu.size_bytes)
                BW_EQ(bw_rd64(&memory->cpu, 0), memory->gpu_va);
            BW_OK(f.iface->ops->free(f.iface, memory, &err), &err);
            continue;
        }
        uint32_t flags = bw_rng_below(&rng, 2) ? BW_IFACE_VRAM : BW_IFACE_HOST;
        uint64_t size = 1 + bw_rng_below(&rng, 1 << 20);
        if (!BW_OK(f.iface->ops->alloc(f.iface, size, flags, 0, memory, &err), &err))
            break;
        if (memory->cpu.size_bytes)
            bw_wr64(&memory->cpu, 0, memory->gpu_va);
        for (int i = 0; i < LIVE; i++)
            if (&live[i] != memory && live[i].size_bytes &&
                live[i].gpu_va < memory->gpu_va + memory->size_bytes &&
                memory->gpu_va < live[i].gpu_va + live[i].size_bytes)
                BW_TRUE(!"two buffers share an address");
        lowest = memory->gpu_va < lowest ? memory->gpu_va : lowest;
        highest = memory->gpu_va > highest ? memory->gpu_va : highest;
    }
    BW_TRUE(highest - lowest < 256 << 20); /* freed addresses come back */
    for (int i = 0; i < LIVE; i++)
        if (live[i].size_bytes)
            BW_OK(f.iface->ops->free(f.iface, &live[i], &err), &err);
    fixture_close(&f);
}

/* What never gets through costs one deadline, not one for each buffer; and it is forgotten once one does. */
static void calls_put_off_cost_one_deadline(void)
{
    enum { BUFFERS = 30, WAIT_MS = 200 };
    static const char *const faults[] = {"ioctl.UNMAP_MEMORY_FROM_GPU:fail=EINTR",
                                         "ioctl.UNMAP_MEMORY_FROM_GPU:fail=EAGAIN"};
    for (size_t k = 0; k < BW_COUNT_OF(faults); k++) {
        struct kfd_fixture f;
        struct bw_err err = {0};
        struct bw_iface_memory memory[BUFFERS];
        if (!fixture_open(&f, "gfx1100"))
            return;
        f.sys->wait_ns = WAIT_MS * 1000000ull;
        for (int i = 0; i < BUFFERS; i++)
            BW_OK(f.iface->ops->alloc(f.iface, 4096, BW_IFACE_HOST, 0, &memory[i], &err), &err);
        BW_OK(bw_mock_fault_add(f.mock, faults[k], &err), &err);
        uint64_t begin_ns = f.sys->ops->clock_ns(f.sys);
        for (int i = 0; i < BUFFERS; i++)
            BW_EQ(f.iface->ops->free(f.iface, &memory[i], &err), k ? -EAGAIN : -EINTR);
        uint64_t taken_ns = f.sys->ops->clock_ns(f.sys) - begin_ns;
        BW_TRUE(taken_ns >= WAIT_MS * 1000000ull);
        BW_TRUE(taken_ns < 10ull * WAIT_MS * 1000000);
        bw_mock_fault_clear(f.mock);
        for (int i = 0; i < BUFFERS; i++)
            BW_OK(f.iface->ops->free(f.iface, &memory[i], &err), &err);
        BW_OK(f.iface->ops->alloc(f.iface, 4096, BW_IFACE_HOST, 0, &memory[0], &err), &err);
        BW_OK(bw_mock_fault_add(f.mock, "ioctl.UNMAP_MEMORY_FROM_GPU:fail=EINTR,count=1", &err), &err);
        BW_OK(f.iface->ops->free(f.iface, &memory[0], &err), &err);
        fixture_close(&f);
    }
}

BW_TEST_MAIN("iface.kfd", {"calls put off cost one deadline", calls_put_off_cost_one_deadline},
             {"properties come from the topology", properties_come_from_the_topology},
             {"eight GPUs are listed and opened by index", eight_gpus_are_listed_and_opened_by_index},
             {"links come from the topology", links_come_from_the_topology},
             {"memory of each kind", memory_of_each_kind},
             {"user memory is mapped where it is", user_memory_is_mapped_where_it_is},
             {"what makes no sense is refused", what_makes_no_sense_is_refused},
             {"VRAM runs out and comes back", vram_runs_out_and_comes_back},
             {"host memory does not leak", host_memory_does_not_leak},
             {"peers share addresses and strangers do not", peers_share_addresses_and_strangers_do_not},
             {"a GPU opened twice shares its address space", a_gpu_opened_twice_shares_its_address_space},
             {"addresses are reused and never shared", addresses_are_reused_and_never_shared})
