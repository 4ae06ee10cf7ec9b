/* Small helpers over the OS seam, for code in iface/ and above. */
#ifndef BW_IFACE_SYS_UTIL_H
#define BW_IFACE_SYS_UTIL_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/sys.h>

/* Reads a whole text file, at most limit_bytes of it (-EFBIG beyond). *text is NUL terminated, freed by the
 * caller with free(), NULL on failure. 0, -ENOMEM or what open, read, close say. */
int bw_sys_read_text(struct bw_sys *sys, const char *path, uint64_t limit_bytes, char **text);

/* ioctl, repeated while signals interrupt it or the kernel puts it off (EAGAIN: amdgpu resets the GPU, which
 * takes a few seconds at most), for 10 s or sys->wait_ns if that is less. *overdue belongs to the device,
 * starts false and is changed atomically: the last call was put off for so long. Value or -errno. */
int bw_sys_ioctl(struct bw_sys *sys, int fd, unsigned long request, void *argument, bool *overdue);

#endif
