/* Names of a render node's calls. Numbers: Mesa's copy of the interface,
 * include/drm-uapi/{drm.h,amdgpu_drm.h}. */
#include <linux/ioctl.h>

#include "base/bits.h"
#include "mock/drm/drm.h"

enum { DRIVER_FIRST = 0x40 };

static const char *const core[] = {
    [0x00] = "VERSION",
    [0x01] = "GET_UNIQUE",
    [0x05] = "GET_CLIENT",
    [0x09] = "GEM_CLOSE",
    [0x0c] = "GET_CAP",
    [0x0d] = "SET_CLIENT_CAP",
    [0x2d] = "PRIME_HANDLE_TO_FD",
    [0x2e] = "PRIME_FD_TO_HANDLE",
    [0xbf] = "SYNCOBJ_CREATE",
    [0xc0] = "SYNCOBJ_DESTROY",
    [0xc1] = "SYNCOBJ_HANDLE_TO_FD",
    [0xc2] = "SYNCOBJ_FD_TO_HANDLE",
    [0xc3] = "SYNCOBJ_WAIT",
    [0xc4] = "SYNCOBJ_RESET",
    [0xc5] = "SYNCOBJ_SIGNAL",
    [0xca] = "SYNCOBJ_TIMELINE_WAIT",
    [0xcb] = "SYNCOBJ_QUERY",
    [0xcc] = "SYNCOBJ_TRANSFER",
    [0xcd] = "SYNCOBJ_TIMELINE_SIGNAL",
};

static const char *const amdgpu[] = {
    [0x00] = "AMDGPU_GEM_CREATE",
    [0x01] = "AMDGPU_GEM_MMAP",
    [0x02] = "AMDGPU_CTX",
    [0x03] = "AMDGPU_BO_LIST",
    [0x04] = "AMDGPU_CS",
    [0x05] = "AMDGPU_INFO",
    [0x06] = "AMDGPU_GEM_METADATA",
    [0x07] = "AMDGPU_GEM_WAIT_IDLE",
    [0x08] = "AMDGPU_GEM_VA",
    [0x09] = "AMDGPU_WAIT_CS",
    [0x10] = "AMDGPU_GEM_OP",
    [0x11] = "AMDGPU_GEM_USERPTR",
    [0x12] = "AMDGPU_WAIT_FENCES",
    [0x13] = "AMDGPU_VM",
    [0x14] = "AMDGPU_FENCE_TO_HANDLE",
    [0x15] = "AMDGPU_SCHED",
};

const char *bw_mock_drm_name(unsigned long request)
{
    unsigned number = _IOC_NR(request);
    const char *name = number < BW_COUNT_OF(core) ? core[number] : NULL;
    if (number >= DRIVER_FIRST && number - DRIVER_FIRST < BW_COUNT_OF(amdgpu))
        name = amdgpu[number - DRIVER_FIRST];
    return name ? name : "of no known number";
}
