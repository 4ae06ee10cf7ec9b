/* The DRM interface on a machine without the KFD: what it says of a GPU, whose memory reaches whom, queues
 * that the kernel feeds, and what it refuses with which words. */
#define BW_TESTS_DRM
#include <errno.h>
#include <sys/mman.h>

#include "tests/kfd_fixture.h"

static int note(void *user, const struct bw_iface_listing *listing)
{
    *(struct bw_iface_listing *)user = *listing;
    return 0;
}

static void a_gpu_is_described(void)
{
    struct kfd_fixture f;
    struct bw_iface_listing listing;
    struct bw_err err = {0};
    if (!fixture_machine(&f, "gfx1100", 2, 1 << 30))
        return;
    BW_EQ(bw_drm_list(f.sys, note, &listing, &err), 2);
    BW_STR(listing.properties.node_name, "render node 129");
    BW_STR(listing.why, "");
    BW_EQ(bw_sys_wrap_open_descriptors(f.sys), 0);
    BW_EQ(bw_kfd_list(f.sys, note, &listing, &err), -ENODEV);
    BW_EQ(bw_drm_open(f.sys, 2, &f.iface, &err), -ENODEV);
    BW_STR(err.expected, "0 to 1");
    BW_OK(bw_drm_open(f.sys, 0, &f.iface, &err), &err);
    const struct bw_iface_properties *p = &f.iface->properties;
    BW_EQ(p->gfx_version, 110000);
    BW_EQ(p->device_id, 0x744c);
    BW_EQ(p->vram_bytes, 1 << 30);
    BW_EQ(p->simd_count, 192);
    BW_EQ(p->simd_per_cu, 2);
    BW_EQ(p->shader_engines, 6);
    BW_EQ(p->sdma_engines, 2);
    BW_EQ(p->timestamp_hz, 100000000);
    BW_EQ(p->lds_aperture, 0x2000000000000000);
    BW_TRUE(strstr(p->product, "7900") != NULL);
    fixture_close(&f);
}

static void figures_are_those_of_the_kfd(void)
{
    static const char *const archs[] = {"gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201"};
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        struct bw_mock_config config = {.size = sizeof config, .arch = archs[i], .threads = 1};
        struct bw_sys *sys;
        struct bw_iface *kfd, *drm;
        struct bw_err err = {0};
        if (!BW_OK(bw_mock_kfd_create(&config, &sys, &err), &err) ||
            !BW_OK(bw_kfd_open(sys, 0, &kfd, &err), &err) || !BW_OK(bw_drm_open(sys, 0, &drm, &err), &err))
            return;
        const struct bw_iface_properties *a = &kfd->properties, *b = &drm->properties;
        BW_EQ(b->gfx_version, a->gfx_version);
        BW_EQ(b->simd_count, a->simd_count);
        BW_EQ(b->waves_per_simd_max, a->waves_per_simd_max);
        BW_EQ(b->scratch_slots_per_cu, a->scratch_slots_per_cu);
        BW_EQ(b->shader_engines, a->shader_engines);
        BW_EQ(b->array_count, a->array_count);
        BW_EQ(b->lds_bytes, a->lds_bytes);
        BW_EQ(b->wave_size, a->wave_size);
        BW_EQ(b->vram_bytes, a->vram_bytes);
        BW_EQ(b->visible_vram_bytes, a->visible_vram_bytes);
        BW_EQ(b->timestamp_hz, a->timestamp_hz);
        BW_STR(b->product, a->product);
        drm->ops->close(drm);
        kfd->ops->close(kfd);
        bw_sys_destroy(sys);
    }
}

static void vram_is_not_overcommitted(void)
{
    struct kfd_fixture f;
    struct bw_iface_memory most, more;
    struct bw_err err = {0};
    uint64_t available;
    if (!fixture_machine(&f, "gfx1100", 1, 64 << 20) || !BW_OK(bw_drm_open(f.sys, 0, &f.iface, &err), &err))
        return;
    const struct bw_iface_ops *ops = f.iface->ops;
    BW_OK(ops->alloc(f.iface, 48 << 20, BW_IFACE_VRAM, 0, &most, &err), &err);
    BW_TRUE(most.cpu.size_bytes == 0 && most.gpu_va % (2 << 20) == 0);
    BW_OK(ops->available_memory(f.iface, &available, &err), &err);
    BW_EQ(available, 16 << 20);
    BW_EQ(ops->alloc(f.iface, 17 << 20, BW_IFACE_VRAM, 0, &more, &err), -ENOMEM);
    BW_STR(err.observed, "16777216 bytes are free");
    BW_OK(ops->alloc(f.iface, 16 << 20, BW_IFACE_VRAM | BW_IFACE_CPU_VISIBLE, 0, &more, &err), &err);
    bw_wr32(&more.cpu, 0, 7);
    BW_EQ(ops->alloc(f.iface, 4096, BW_IFACE_VRAM | BW_IFACE_HOST, 0, &more, &err), -EINVAL);
    BW_EQ(ops->alloc(f.iface, 4096, BW_IFACE_HOST, 4096, &more, &err), -EINVAL);
    BW_EQ(ops->alloc(f.iface, 0, BW_IFACE_HOST, 0, &more, &err), -EINVAL);
    BW_EQ(ops->alloc(f.iface, 4096, BW_IFACE_USER_POINTER, 5, &more, &err), -EINVAL);
    BW_OK(ops->free(f.iface, &more, &err), &err);
    BW_OK(ops->free(f.iface, &most, &err), &err);
    BW_OK(ops->available_memory(f.iface, &available, &err), &err);
    BW_EQ(available, 64 << 20);
    fixture_close(&f);
}

/* Host memory goes to the other GPU by a dma-buf, whoever is closed first; device memory does not. */
static void host_memory_is_shared(void)
{
    for (int order = 0; order < 2; order++) {
        struct kfd_fixture f;
        struct bw_iface *other;
        struct bw_iface_memory host, vram;
        struct bw_iface_link link;
        struct pm4_fixture queue;
        struct bw_err err = {0};
        if (!fixture_machine(&f, "gfx1100", 2, 64 << 20) ||
            !BW_OK(bw_drm_open(f.sys, 0, &f.iface, &err), &err) ||
            !BW_OK(bw_drm_open(f.sys, 1, &other, &err), &err))
            return;
        const struct bw_iface_ops *ops = f.iface->ops;
        BW_OK(ops->alloc(f.iface, 4096, BW_IFACE_HOST | BW_IFACE_UNCACHED, 0, &host, &err), &err);
        BW_OK(ops->alloc(f.iface, 4096, BW_IFACE_VRAM, 0, &vram, &err), &err);
        BW_OK(ops->link(other, f.iface, &link, &err), &err);
        BW_EQ(link.kind, BW_IFACE_LINK_NONE);
        BW_EQ(ops->map_peer(other, f.iface, &vram, &err), -EOPNOTSUPP);
        BW_TRUE(strstr(err.hint, "GPUs of the KFD reach each other") != NULL);
        BW_OK(ops->map_peer(other, f.iface, &host, &err), &err);
        BW_OK(ops->map_peer(other, f.iface, &host, &err), &err); /* there already */
        bw_wr64(&host.cpu, 0, 0);
        BW_OK(pm4_open(&queue, other, &err), &err);
        BW_EQ(queue.queue.doorbell.size_bytes, 0);
        BW_EQ(bw_rd64(&queue.queue.done, 0), 0);
        BW_OK(pm4_signal(&queue, host.gpu_va, 99, &err), &err);
        for (int i = 0; i < 100 && bw_rd64(&queue.queue.done, 0) != 1; i++)
            ops->wait_interrupt(other, FIXTURE_WAIT_NS / 100, &err);
        BW_EQ(bw_rd64(&queue.queue.done, 0), 1);
        BW_EQ(bw_rd64(&host.cpu, 0), 99);
        BW_OK(pm4_close(&queue, &err), &err);
        if (order)
            ops->close(other);
        BW_OK(ops->free(f.iface, &host, &err), &err);
        BW_OK(ops->free(f.iface, &vram, &err), &err);
        if (!order)
            ops->close(other);
        fixture_close(&f);
    }
}

/* Where the other GPU cannot be made to let go of memory, its address is never used for anything else. */
static void an_address_that_others_reach_stays_taken(void)
{
    struct kfd_fixture f;
    struct bw_iface *other;
    struct bw_iface_memory host, next;
    struct bw_err err = {0};
    if (!fixture_machine(&f, "gfx1100", 2, 64 << 20) || !BW_OK(bw_drm_open(f.sys, 0, &f.iface, &err), &err) ||
        !BW_OK(bw_drm_open(f.sys, 1, &other, &err), &err))
        return;
    const struct bw_iface_ops *ops = f.iface->ops;
    BW_OK(ops->alloc(f.iface, 8192, BW_IFACE_HOST, 0, &host, &err), &err);
    BW_OK(ops->map_peer(other, f.iface, &host, &err), &err);
    uint64_t va = host.gpu_va;
    BW_OK(bw_mock_fault_add(f.mock, "ioctl.GEM_VA:fail=EIO,count=1", &err), &err);
    BW_EQ(ops->free(f.iface, &host, &err), -EIO);
    BW_STR(err.what, "GEM_VA, unmap memory of another GPU");
    BW_OK(ops->free(f.iface, &host, &err), &err);
    for (int i = 0; i < 3; i++) {
        BW_OK(ops->alloc(f.iface, 8192, BW_IFACE_HOST, 0, &next, &err), &err);
        BW_TRUE(next.gpu_va >= va + 8192 || next.gpu_va + 8192 <= va);
        BW_OK(ops->map_peer(other, f.iface, &next, &err), &err);
        BW_OK(ops->free(f.iface, &next, &err), &err);
    }
    ops->close(other);
    fixture_close(&f);
}

/* The same where mapping fails half-way and what was done of it cannot be undone. */
static void an_address_that_is_half_shared_stays_taken(void)
{
    struct kfd_fixture f;
    struct bw_iface *other;
    struct bw_iface_memory first, second;
    struct bw_err err = {0};
    if (!fixture_machine(&f, "gfx1100", 2, 64 << 20) || !BW_OK(bw_drm_open(f.sys, 0, &f.iface, &err), &err) ||
        !BW_OK(bw_drm_open(f.sys, 1, &other, &err), &err))
        return;
    const struct bw_iface_ops *ops = f.iface->ops;
    BW_OK(ops->alloc(f.iface, 4096, BW_IFACE_HOST, 0, &first, &err), &err);
    BW_OK(bw_mock_fault_add(f.mock, "ioctl.BO_LIST:fail=EIO,nth=1,count=1", &err), &err);
    BW_OK(bw_mock_fault_add(f.mock, "ioctl.GEM_VA:fail=EIO,nth=2,count=1", &err), &err);
    BW_EQ(ops->map_peer(other, f.iface, &first, &err), -EIO);
    bw_mock_fault_clear(f.mock);
    uint64_t taken = first.gpu_va;
    BW_OK(ops->free(f.iface, &first, &err), &err);
    BW_OK(ops->alloc(f.iface, 4096, BW_IFACE_HOST, 0, &second, &err), &err);
    BW_TRUE(second.gpu_va != taken);
    BW_OK(ops->map_peer(other, f.iface, &second, &err), &err);
    BW_OK(ops->free(f.iface, &second, &err), &err);
    ops->close(other);
    fixture_close(&f);
}

/* What fails on the GPU is told once, by kind, and the queue takes nothing more. */
static void faults_are_told(void)
{
    struct kfd_fixture f;
    struct pm4_fixture queue;
    struct bw_fault fault;
    struct bw_err err = {0};
    if (!fixture_open(&f, "gfx1100"))
        return;
    const struct bw_iface_ops *ops = f.iface->ops;
    BW_OK(pm4_open(&queue, f.iface, &err), &err);
    BW_OK(ops->query_fault(f.iface, &fault, &err), &err);
    BW_EQ(fault.kind, BW_FAULT_NONE);
    BW_OK(pm4_signal(&queue, 0x123000, 1, &err), &err);
    for (int i = 0; i < 100 && fault.kind != BW_FAULT_HARDWARE; i++) {
        struct bw_fault now;
        ops->wait_interrupt(f.iface, FIXTURE_WAIT_NS / 100, &err);
        BW_OK(ops->query_fault(f.iface, &now, &err), &err);
        if (now.kind == BW_FAULT_NONE)
            continue;
        if (now.kind == BW_FAULT_MEMORY) {
            BW_EQ(fault.kind, BW_FAULT_NONE);
            BW_EQ(now.va, 0x123000);
            BW_TRUE(now.not_present && !now.read_only && !now.no_execute);
        }
        fault = now;
    }
    BW_EQ(fault.kind, BW_FAULT_HARDWARE); /* the reset that came of it */
    BW_EQ(pm4_signal(&queue, 0x123000, 1, &err), -ECANCELED);
    BW_OK(ops->query_fault(f.iface, &fault, &err), &err);
    BW_EQ(fault.kind, BW_FAULT_NONE);
    BW_OK(pm4_close(&queue, &err), &err);
    BW_OK(pm4_open(&queue, f.iface, &err), &err);
    BW_OK(pm4_signal(&queue, queue.ring.gpu_va + 2048, 3, &err), &err);
    for (int i = 0; i < 100 && bw_rd64(&queue.queue.done, 0) != 1; i++)
        ops->wait_interrupt(f.iface, FIXTURE_WAIT_NS / 100, &err);
    BW_EQ(bw_rd64(&queue.ring.cpu, 2048), 3);
    BW_OK(pm4_close(&queue, &err), &err);
    fixture_close(&f);
}

static void refusals_have_words(void)
{
    struct kfd_fixture f;
    struct bw_iface_listing listing;
    struct bw_iface_queue queue;
    struct bw_iface_queue_request request = {.kind = BW_IFACE_QUEUE_COMPUTE_AQL};
    struct bw_err err = {0};
    if (!fixture_open(&f, "gfx1100"))
        return;
    BW_EQ(f.iface->ops->queue_create(f.iface, &request, &queue, &err), -EOPNOTSUPP);
    BW_OK(bw_mock_fault_add(f.mock, "ioctl.VERSION:fail=EACCES", &err), &err);
    BW_EQ(bw_drm_list(f.sys, note, &listing, &err), 1);
    BW_TRUE(strstr(listing.why, "VERSION of render node 128 (EACCES)") != NULL);
    BW_EQ(listing.properties.device_id, 0x744c);
    bw_mock_fault_clear(f.mock);
    fixture_close(&f);
}

BW_TEST_MAIN("iface.drm", {"a GPU is described", a_gpu_is_described},
             {"figures are those of the KFD", figures_are_those_of_the_kfd},
             {"VRAM is not overcommitted", vram_is_not_overcommitted},
             {"host memory is shared", host_memory_is_shared},
             {"an address that others reach stays taken", an_address_that_others_reach_stays_taken},
             {"an address that is half shared stays taken", an_address_that_is_half_shared_stays_taken},
             {"faults are told", faults_are_told}, {"refusals have words", refusals_have_words})
