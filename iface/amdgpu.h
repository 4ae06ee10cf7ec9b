/* What the KFD and the DRM interface share about GPUs behind amdgpu. */
#ifndef BW_IFACE_AMDGPU_H
#define BW_IFACE_AMDGPU_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/err.h>
#include <bellwire/sys.h>

/* A request of bw_iface_ops.alloc: one kind of memory, a size that can be, an address where and only where
 * the memory is the caller's. 0 or -EINVAL. */
int bw_amdgpu_request_check(const char *subsystem, uint64_t size_bytes, uint32_t flags, uint64_t cpu_address,
                            struct bw_err *err);

/* Marketing name from libdrm's amdgpu.ids, by PCI device id and the revision that the render node's PCI
 * device has; empty when not known. */
void bw_amdgpu_product(struct bw_sys *sys, uint32_t render_minor, uint32_t device_id, char *name,
                       uint32_t name_size);
/* The line of amdgpu.ids for this device; false when none. */
bool bw_amdgpu_ids_find(const char *ids, uint32_t device_id, uint32_t revision, char *name,
                        uint32_t name_size);

/* Fills err for opening a render node: names the group or container option that is missing. Returns the error
 * code: -ENODEV for whatever means that it is not there. */
int bw_amdgpu_fail_open(struct bw_err *err, int rc, const char *subsystem, const char *path);

#endif
