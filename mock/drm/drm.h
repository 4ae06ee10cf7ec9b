/* The DRM front: a render node's ioctls, as far as libdrm-level code asks before it uses the KFD. */
#ifndef BW_MOCK_DRM_DRM_H
#define BW_MOCK_DRM_DRM_H

#include "mock/machine.h"

int bw_mock_drm_ioctl(struct bw_mock *machine, struct bw_mock_gpu *gpu, unsigned long request,
                      void *argument);

/* For traces; never NULL. */
const char *bw_mock_drm_name(unsigned long request);

#endif
