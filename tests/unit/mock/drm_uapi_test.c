/* Goal: the mock's reading of DRM's and amdgpu's interface (Mesa's copy) and the header that iface/ is built
 * on (libdrm's) say the same. */
#include <amdgpu_drm.h>

#include "mock/drm/drm.h"
#include "mock/drm/uapi.h"
#include "tests/check.h"

#define SAME_FIELD(ours, our_field, theirs, their_field)              \
    (BW_EQ(offsetof(ours, our_field), offsetof(theirs, their_field)), \
     BW_EQ(sizeof(((ours *)0)->our_field), sizeof(((theirs *)0)->their_field)))

static void names_belong_to_numbers(void)
{
    static const struct {
        unsigned long request;
        const char *name;
    } calls[] = {
        {DRM_IOCTL_VERSION, "VERSION"},
        {DRM_IOCTL_GEM_CLOSE, "GEM_CLOSE"},
        {DRM_IOCTL_PRIME_HANDLE_TO_FD, "PRIME_HANDLE_TO_FD"},
        {DRM_IOCTL_PRIME_FD_TO_HANDLE, "PRIME_FD_TO_HANDLE"},
        {DRM_IOCTL_AMDGPU_GEM_CREATE, "AMDGPU_GEM_CREATE"},
        {DRM_IOCTL_AMDGPU_GEM_MMAP, "AMDGPU_GEM_MMAP"},
        {DRM_IOCTL_AMDGPU_CTX, "AMDGPU_CTX"},
        {DRM_IOCTL_AMDGPU_BO_LIST, "AMDGPU_BO_LIST"},
        {DRM_IOCTL_AMDGPU_CS, "AMDGPU_CS"},
        {DRM_IOCTL_AMDGPU_INFO, "AMDGPU_INFO"},
        {DRM_IOCTL_AMDGPU_GEM_VA, "AMDGPU_GEM_VA"},
        {DRM_IOCTL_AMDGPU_WAIT_CS, "AMDGPU_WAIT_CS"},
        {DRM_IOCTL_AMDGPU_GEM_USERPTR, "AMDGPU_GEM_USERPTR"},
        {DRM_IOCTL_AMDGPU_WAIT_FENCES, "AMDGPU_WAIT_FENCES"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        BW_STR(bw_mock_drm_name(calls[i].request), calls[i].name);
}

static void numbers_are_the_same(void)
{
    BW_EQ(MOCK_DRM_IP_COMPUTE, AMDGPU_HW_IP_COMPUTE);
    BW_EQ(MOCK_DRM_IP_DMA, AMDGPU_HW_IP_DMA);
    BW_EQ(MOCK_DRM_DOMAIN_CPU, AMDGPU_GEM_DOMAIN_CPU);
    BW_EQ(MOCK_DRM_DOMAIN_GTT, AMDGPU_GEM_DOMAIN_GTT);
    BW_EQ(MOCK_DRM_DOMAIN_VRAM, AMDGPU_GEM_DOMAIN_VRAM);
    BW_EQ(MOCK_DRM_DOMAINS_REST, AMDGPU_GEM_DOMAIN_GDS | AMDGPU_GEM_DOMAIN_GWS | AMDGPU_GEM_DOMAIN_OA);
    BW_EQ(MOCK_DRM_CREATE_CPU_ACCESS, AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED);
    BW_EQ(MOCK_DRM_CREATE_NO_CPU_ACCESS, AMDGPU_GEM_CREATE_NO_CPU_ACCESS);
    BW_EQ(MOCK_DRM_CREATE_USWC, AMDGPU_GEM_CREATE_CPU_GTT_USWC);
    BW_EQ(MOCK_DRM_CREATE_VRAM_CLEARED, AMDGPU_GEM_CREATE_VRAM_CLEARED);
    BW_EQ(MOCK_DRM_CREATE_CONTIGUOUS, AMDGPU_GEM_CREATE_VRAM_CONTIGUOUS);
    BW_EQ(MOCK_DRM_CREATE_ALWAYS_VALID, AMDGPU_GEM_CREATE_VM_ALWAYS_VALID);
    BW_EQ(MOCK_DRM_CREATE_EXPLICIT_SYNC, AMDGPU_GEM_CREATE_EXPLICIT_SYNC);
    BW_EQ(MOCK_DRM_CREATE_WIPE, AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE);
    BW_EQ(MOCK_DRM_USERPTR_READONLY, AMDGPU_GEM_USERPTR_READONLY);
    BW_EQ(MOCK_DRM_USERPTR_ANONONLY, AMDGPU_GEM_USERPTR_ANONONLY);
    BW_EQ(MOCK_DRM_USERPTR_VALIDATE, AMDGPU_GEM_USERPTR_VALIDATE);
    BW_EQ(MOCK_DRM_USERPTR_REGISTER, AMDGPU_GEM_USERPTR_REGISTER);
    BW_EQ(MOCK_DRM_VA_MAP, AMDGPU_VA_OP_MAP);
    BW_EQ(MOCK_DRM_VA_UNMAP, AMDGPU_VA_OP_UNMAP);
    BW_EQ(MOCK_DRM_PAGE_READABLE, AMDGPU_VM_PAGE_READABLE);
    BW_EQ(MOCK_DRM_PAGE_WRITEABLE, AMDGPU_VM_PAGE_WRITEABLE);
    BW_EQ(MOCK_DRM_PAGE_EXECUTABLE, AMDGPU_VM_PAGE_EXECUTABLE);
    BW_EQ(MOCK_DRM_PAGE_MTYPES, AMDGPU_VM_MTYPE_MASK);
    BW_EQ(MOCK_DRM_CTX_ALLOC, AMDGPU_CTX_OP_ALLOC_CTX);
    BW_EQ(MOCK_DRM_CTX_FREE, AMDGPU_CTX_OP_FREE_CTX);
    BW_EQ(MOCK_DRM_CTX_QUERY_STATE, AMDGPU_CTX_OP_QUERY_STATE);
    BW_EQ(MOCK_DRM_CTX_QUERY_STATE2, AMDGPU_CTX_OP_QUERY_STATE2);
    BW_EQ(MOCK_DRM_RESET_GUILTY, AMDGPU_CTX_GUILTY_RESET);
    BW_EQ(MOCK_DRM_STATE_RESET, AMDGPU_CTX_QUERY2_FLAGS_RESET);
    BW_EQ(MOCK_DRM_STATE_GUILTY, AMDGPU_CTX_QUERY2_FLAGS_GUILTY);
    BW_EQ(MOCK_DRM_PRIORITY_VERY_HIGH, AMDGPU_CTX_PRIORITY_VERY_HIGH);
    BW_EQ(MOCK_DRM_CHUNK_IB, AMDGPU_CHUNK_ID_IB);
    BW_EQ(MOCK_DRM_CHUNK_FENCE, AMDGPU_CHUNK_ID_FENCE);
    BW_EQ(MOCK_DRM_CHUNK_BO_HANDLES, AMDGPU_CHUNK_ID_BO_HANDLES);
    BW_EQ(MOCK_DRM_LIST_CREATE, AMDGPU_BO_LIST_OP_CREATE);
    BW_EQ(MOCK_DRM_LIST_DESTROY, AMDGPU_BO_LIST_OP_DESTROY);
    BW_EQ(MOCK_DRM_LIST_UPDATE, AMDGPU_BO_LIST_OP_UPDATE);
}

static void structures_are_the_same(void)
{
    SAME_FIELD(struct mock_drm_gem_create, alignment, struct drm_amdgpu_gem_create_in, alignment);
    SAME_FIELD(struct mock_drm_gem_create, domains, struct drm_amdgpu_gem_create_in, domains);
    SAME_FIELD(struct mock_drm_gem_create, flags, struct drm_amdgpu_gem_create_in, domain_flags);
    SAME_FIELD(struct mock_drm_userptr, size, struct drm_amdgpu_gem_userptr, size);
    SAME_FIELD(struct mock_drm_userptr, handle, struct drm_amdgpu_gem_userptr, handle);
    SAME_FIELD(struct mock_drm_gem_va, operation, struct drm_amdgpu_gem_va, operation);
    SAME_FIELD(struct mock_drm_gem_va, flags, struct drm_amdgpu_gem_va, flags);
    SAME_FIELD(struct mock_drm_gem_va, va, struct drm_amdgpu_gem_va, va_address);
    SAME_FIELD(struct mock_drm_gem_va, offset, struct drm_amdgpu_gem_va, offset_in_bo);
    SAME_FIELD(struct mock_drm_gem_va, size, struct drm_amdgpu_gem_va, map_size);
    SAME_FIELD(union mock_drm_ctx, in.id, union drm_amdgpu_ctx, in.ctx_id);
    SAME_FIELD(union mock_drm_ctx, in.priority, union drm_amdgpu_ctx, in.priority);
    SAME_FIELD(union mock_drm_ctx, made.id, union drm_amdgpu_ctx, out.alloc.ctx_id);
    SAME_FIELD(union mock_drm_ctx, state.flags, union drm_amdgpu_ctx, out.state.flags);
    SAME_FIELD(union mock_drm_ctx, state.reset_status, union drm_amdgpu_ctx, out.state.reset_status);
    SAME_FIELD(struct mock_drm_cs, list, struct drm_amdgpu_cs_in, bo_list_handle);
    SAME_FIELD(struct mock_drm_cs, chunk_count, struct drm_amdgpu_cs_in, num_chunks);
    SAME_FIELD(struct mock_drm_cs, chunks, struct drm_amdgpu_cs_in, chunks);
    SAME_FIELD(struct mock_drm_chunk, length_words, struct drm_amdgpu_cs_chunk, length_dw);
    SAME_FIELD(struct mock_drm_chunk, data, struct drm_amdgpu_cs_chunk, chunk_data);
    SAME_FIELD(struct mock_drm_ib, flags, struct drm_amdgpu_cs_chunk_ib, flags);
    SAME_FIELD(struct mock_drm_ib, va, struct drm_amdgpu_cs_chunk_ib, va_start);
    SAME_FIELD(struct mock_drm_ib, bytes, struct drm_amdgpu_cs_chunk_ib, ib_bytes);
    SAME_FIELD(struct mock_drm_ib, ip_type, struct drm_amdgpu_cs_chunk_ib, ip_type);
    SAME_FIELD(struct mock_drm_ib, ring, struct drm_amdgpu_cs_chunk_ib, ring);
    SAME_FIELD(struct mock_drm_user_fence, offset, struct drm_amdgpu_cs_chunk_fence, offset);
    SAME_FIELD(struct mock_drm_list, list, struct drm_amdgpu_bo_list_in, list_handle);
    SAME_FIELD(struct mock_drm_list, count, struct drm_amdgpu_bo_list_in, bo_number);
    SAME_FIELD(struct mock_drm_list, entry_bytes, struct drm_amdgpu_bo_list_in, bo_info_size);
    SAME_FIELD(struct mock_drm_list, entries, struct drm_amdgpu_bo_list_in, bo_info_ptr);
    SAME_FIELD(struct mock_drm_list_entry, handle, struct drm_amdgpu_bo_list_entry, bo_handle);
    SAME_FIELD(struct mock_drm_prime, handle, struct drm_prime_handle, handle);
    SAME_FIELD(struct mock_drm_prime, fd, struct drm_prime_handle, fd);
    SAME_FIELD(struct mock_drm_wait_cs, timeout_ns, struct drm_amdgpu_wait_cs_in, timeout);
    SAME_FIELD(struct mock_drm_wait_cs, ring, struct drm_amdgpu_wait_cs_in, ring);
    SAME_FIELD(struct mock_drm_wait_cs, context, struct drm_amdgpu_wait_cs_in, ctx_id);
    SAME_FIELD(struct mock_drm_fence, ring, struct drm_amdgpu_fence, ring);
    SAME_FIELD(struct mock_drm_fence, sequence, struct drm_amdgpu_fence, seq_no);
    SAME_FIELD(union mock_drm_wait_fences, in.count, union drm_amdgpu_wait_fences, in.fence_count);
    SAME_FIELD(union mock_drm_wait_fences, in.all, union drm_amdgpu_wait_fences, in.wait_all);
    SAME_FIELD(union mock_drm_wait_fences, in.timeout_ns, union drm_amdgpu_wait_fences, in.timeout_ns);
    SAME_FIELD(union mock_drm_wait_fences, out.status, union drm_amdgpu_wait_fences, out.status);
    SAME_FIELD(union mock_drm_wait_fences, out.first, union drm_amdgpu_wait_fences, out.first_signaled);
}

BW_TEST_MAIN("mock.drm_uapi", {"names belong to numbers", names_belong_to_numbers},
             {"numbers are the same", numbers_are_the_same},
             {"structures are the same", structures_are_the_same})
