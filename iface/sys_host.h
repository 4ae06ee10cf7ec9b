/* Inside of the real OS seam, shared by its files. */
#ifndef BW_IFACE_SYS_HOST_H
#define BW_IFACE_SYS_HOST_H

#include <bellwire/sys.h>

/* Through io_uring; -ENOSYS, -EPERM, ...: containers commonly filter it (seccomp answers EPERM or ENOSYS;
 * kernel.io_uring_disabled answers EPERM). */
int bw_sys_host_ring_open(uint32_t entries, struct bw_ring **ring);
/* By threads, each in a pread. */
int bw_sys_host_threads_open(uint32_t entries, struct bw_ring **ring);

/* sys_host_node.c */
int bw_sys_host_node(const struct bw_node_request *request);

int bw_sys_host_pci_scan(int (*found)(void *user, const struct bw_pci_id *id), void *user);

#endif
