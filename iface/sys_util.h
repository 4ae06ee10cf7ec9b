/* Small helpers over the OS seam, for code in iface/ and above. */
#ifndef BW_IFACE_SYS_UTIL_H
#define BW_IFACE_SYS_UTIL_H

#include <stdint.h>

#include <bellwire/sys.h>

/* Reads a whole text file, at most limit_bytes of it (-EFBIG beyond). *text is NUL terminated, freed by the
 * caller with free(), NULL on failure. 0, -ENOMEM or what open, read, close say. */
int bw_sys_read_text(struct bw_sys *sys, const char *path, uint64_t limit_bytes, char **text);

#endif
