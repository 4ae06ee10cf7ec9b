/* DRM's and amdgpu's ioctl arguments as the mock understands them. Written from Mesa's copy of the interface,
 * include/drm-uapi/{drm.h,amdgpu_drm.h}; iface/ follows libdrm's. */
#ifndef BW_MOCK_DRM_UAPI_H
#define BW_MOCK_DRM_UAPI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum { MOCK_DRM_VERSION_MAJOR = 3, MOCK_DRM_VERSION_MINOR = 59 };

enum { MOCK_DRM_IP_GFX = 0, MOCK_DRM_IP_COMPUTE = 1, MOCK_DRM_IP_DMA = 2, MOCK_DRM_IP_NUM = 10 };

#define MOCK_DRM_DOMAIN_CPU      (1u << 0)
#define MOCK_DRM_DOMAIN_GTT      (1u << 1)
#define MOCK_DRM_DOMAIN_VRAM     (1u << 2)
#define MOCK_DRM_DOMAINS_REST    (7u << 3) /* GDS, GWS, OA */
#define MOCK_DRM_DOMAIN_DOORBELL (1u << 6)

#define MOCK_DRM_CREATE_CPU_ACCESS    (1ull << 0)
#define MOCK_DRM_CREATE_NO_CPU_ACCESS (1ull << 1)
#define MOCK_DRM_CREATE_USWC          (1ull << 2)
#define MOCK_DRM_CREATE_VRAM_CLEARED  (1ull << 3)
#define MOCK_DRM_CREATE_CONTIGUOUS    (1ull << 5)
#define MOCK_DRM_CREATE_ALWAYS_VALID  (1ull << 6)
#define MOCK_DRM_CREATE_EXPLICIT_SYNC (1ull << 7)
#define MOCK_DRM_CREATE_WIPE          (1ull << 9)
#define MOCK_DRM_CREATE_DISCARDABLE   (1ull << 12)
#define MOCK_DRM_CREATE_COHERENT      (1ull << 13)
#define MOCK_DRM_CREATE_UNCACHED      (1ull << 14)

struct mock_drm_gem_create {
    uint64_t size, alignment, domains, flags;
};
static_assert(sizeof(struct mock_drm_gem_create) == 32, "drm_amdgpu_gem_create_in");

struct mock_drm_gem_mmap {
    uint32_t handle, pad;
};

struct mock_drm_gem_close {
    uint32_t handle, pad;
};

#define MOCK_DRM_USERPTR_READONLY (1u << 0)
#define MOCK_DRM_USERPTR_ANONONLY (1u << 1)
#define MOCK_DRM_USERPTR_VALIDATE (1u << 2)
#define MOCK_DRM_USERPTR_REGISTER (1u << 3)

struct mock_drm_userptr {
    uint64_t address, size;
    uint32_t flags, handle;
};
static_assert(sizeof(struct mock_drm_userptr) == 24, "drm_amdgpu_gem_userptr");

enum mock_drm_va_operation {
    MOCK_DRM_VA_MAP = 1,
    MOCK_DRM_VA_UNMAP = 2,
    MOCK_DRM_VA_CLEAR = 3,
    MOCK_DRM_VA_REPLACE = 4,
};

#define MOCK_DRM_PAGE_DELAY_UPDATE (1u << 0)
#define MOCK_DRM_PAGE_READABLE     (1u << 1)
#define MOCK_DRM_PAGE_WRITEABLE    (1u << 2)
#define MOCK_DRM_PAGE_EXECUTABLE   (1u << 3)
#define MOCK_DRM_PAGE_MTYPES       (0xfu << 5)
#define MOCK_DRM_PAGE_NOALLOC      (1u << 9)

struct mock_drm_gem_va {
    uint32_t handle, pad, operation, flags;
    uint64_t va, offset, size;
};
static_assert(sizeof(struct mock_drm_gem_va) == 40, "drm_amdgpu_gem_va of kernels before 6.14");

enum mock_drm_ctx_operation {
    MOCK_DRM_CTX_ALLOC = 1,
    MOCK_DRM_CTX_FREE = 2,
    MOCK_DRM_CTX_QUERY_STATE = 3,
    MOCK_DRM_CTX_QUERY_STATE2 = 4,
};

enum {
    MOCK_DRM_PRIORITY_NORMAL = 0,
    MOCK_DRM_PRIORITY_VERY_HIGH = 1023,
};

enum { MOCK_DRM_RESET_NONE = 0, MOCK_DRM_RESET_GUILTY = 1 };
#define MOCK_DRM_STATE_RESET  (1ull << 0)
#define MOCK_DRM_STATE_GUILTY (1ull << 2)

union mock_drm_ctx {
    struct {
        uint32_t operation, flags, id;
        int32_t priority;
    } in;
    struct {
        uint32_t id, pad;
    } made;
    struct {
        uint64_t flags;
        uint32_t hangs, reset_status;
    } state;
};
static_assert(sizeof(union mock_drm_ctx) == 16, "drm_amdgpu_ctx");

enum mock_drm_chunk_id {
    MOCK_DRM_CHUNK_IB = 1,
    MOCK_DRM_CHUNK_FENCE = 2,
    MOCK_DRM_CHUNK_DEPENDENCIES = 3,
    MOCK_DRM_CHUNK_BO_HANDLES = 6,
    MOCK_DRM_CHUNK_TIMELINE_WAIT = 8,
    MOCK_DRM_CHUNK_TIMELINE_SIGNAL = 9,
    MOCK_DRM_CHUNK_LAST = 10, /* CP_GFX_SHADOW */
};

struct mock_drm_cs {
    uint32_t context, list, chunk_count, flags;
    uint64_t chunks; /* address of an array of addresses of chunks */
};
static_assert(sizeof(struct mock_drm_cs) == 24, "drm_amdgpu_cs_in");

struct mock_drm_chunk {
    uint32_t id, length_words;
    uint64_t data;
};

struct mock_drm_ib {
    uint32_t pad, flags;
    uint64_t va;
    uint32_t bytes, ip_type, ip_instance, ring;
};
static_assert(sizeof(struct mock_drm_ib) == 32, "drm_amdgpu_cs_chunk_ib");

struct mock_drm_user_fence {
    uint32_t handle, offset;
};

struct mock_drm_dependency {
    uint32_t ip_type, ip_instance, ring, context;
    uint64_t sequence;
};
static_assert(sizeof(struct mock_drm_dependency) == 24, "drm_amdgpu_cs_chunk_dep");

struct mock_drm_syncobj_point {
    uint32_t handle, flags;
    uint64_t point;
};
static_assert(sizeof(struct mock_drm_syncobj_point) == 16, "drm_amdgpu_cs_chunk_syncobj");

#define MOCK_DRM_SYNCOBJ_SIGNALED (1u << 0) /* of CREATE */

struct mock_drm_syncobj {
    uint32_t handle, flags; /* DESTROY: flags is padding */
};

struct mock_drm_syncobj_fd {
    uint32_t handle, flags;
    int32_t fd;
    uint32_t pad;
};

enum mock_drm_cap { MOCK_DRM_CAP_SYNCOBJ = 0x13, MOCK_DRM_CAP_SYNCOBJ_TIMELINE = 0x14 };

enum mock_drm_list_operation {
    MOCK_DRM_LIST_CREATE = 0,
    MOCK_DRM_LIST_DESTROY = 1,
    MOCK_DRM_LIST_UPDATE = 2
};

struct mock_drm_prime {
    uint32_t handle, flags;
    int32_t fd;
};
static_assert(sizeof(struct mock_drm_prime) == 12, "drm_prime_handle");

struct mock_drm_list {
    uint32_t operation, list, count, entry_bytes;
    uint64_t entries;
};
struct mock_drm_list_entry {
    uint32_t handle, priority;
};

struct mock_drm_wait_cs {
    uint64_t sequence, timeout_ns;
    uint32_t ip_type, ip_instance, ring, context;
};
static_assert(sizeof(struct mock_drm_wait_cs) == 32, "drm_amdgpu_wait_cs_in");

struct mock_drm_fence {
    uint32_t context, ip_type, ip_instance, ring;
    uint64_t sequence;
};

union mock_drm_wait_fences {
    struct {
        uint64_t fences;
        uint32_t count, all;
        uint64_t timeout_ns;
    } in;
    struct {
        uint32_t status, first;
    } out;
};
static_assert(sizeof(union mock_drm_wait_fences) == 24, "drm_amdgpu_wait_fences");

struct mock_drm_fault {
    uint64_t address;
    uint32_t status, hub;
};

#endif
