/* <linux/kfd_ioctl.h> includes <drm/drm.h>, which Debian leaves to libdrm-dev, where it lies elsewhere. */
#include <libdrm/drm.h>
