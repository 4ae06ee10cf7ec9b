/* Which way tests reach a mock GPU: the KFD, or the render node alone in the programs NAME.drm, which are the
 * same sources once more (tests/CMakeLists.txt). */
#ifndef BW_TESTS_WAY_H
#define BW_TESTS_WAY_H

#include "iface/iface.h"

#ifdef BW_TESTS_DRM
#define WAY                  "drm"
#define WAY_DRM              true
#define way_open             bw_drm_open
#define WAY_EITHER(kfd, drm) (drm)
#else
#define WAY                  "kfd"
#define WAY_DRM              false
#define way_open             bw_kfd_open
#define WAY_EITHER(kfd, drm) (kfd)
#endif

#endif
