/* The DRM front: a render node's ioctls.
 *
 *   drm.c       dispatch, questions about the device, clients   gem.c      buffers and their addresses
 *   submit.c    contexts, submission, feeding the engines       share.c    lists, dma-bufs
 *   schedule.c  when a job goes to its ring                     syncobj.c  timelines between files
 *   wait.c      waiting, and the GPUs' rings */
#ifndef BW_MOCK_DRM_DRM_H
#define BW_MOCK_DRM_DRM_H

#include "mock/machine.h"

/* What DEV_INFO gives as user space's addresses, and what GEM_VA takes. */
#define BW_MOCK_DRM_VA_START 0x200000ull
#define BW_MOCK_DRM_VA_END   0x800000000000ull

/* Dispatched on its number; arguments copied in and out as drm_ioctl.c does. */
int bw_mock_drm_ioctl(struct bw_mock *machine, const struct bw_mock_file *file, unsigned long request,
                      void *argument);

/* The last close of a descriptor of a synchronisation object. */
void bw_mock_drm_syncobj_close(struct bw_mock *machine, struct bw_mock_drm_syncobj *syncobj);

/* Of a request, or of its number alone; never NULL. */
const char *bw_mock_drm_name(unsigned long request);

/* The name of the i-th ioctl that there is, NULL past the end: the sites of fault injection. */
const char *bw_mock_drm_ioctl_name(uint32_t index);

#endif
