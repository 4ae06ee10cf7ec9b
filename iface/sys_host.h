/* Inside of the real OS seam, shared by its files. */
#ifndef BW_IFACE_SYS_HOST_H
#define BW_IFACE_SYS_HOST_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include <bellwire/sys.h>

struct io_uring;

/* The ring is made at the first batch. A process forked off must not touch its parent's ring. */
struct bw_sys_host_ring {
    pthread_mutex_t lock;
    struct io_uring *ring; /* NULL: none yet, or refused */
    bool refused;
    pid_t owner;
};

int bw_sys_host_ring_init(struct bw_sys_host_ring *ring);
void bw_sys_host_ring_fini(struct bw_sys_host_ring *ring);
int bw_sys_host_ring_read(struct bw_sys_host_ring *ring, struct bw_read_request *requests, uint32_t count);

/* All of one request by pread: short only at the end of the file. Bytes read or -errno. */
int64_t bw_sys_host_pread_all(int fd, void *data, uint64_t size_bytes, uint64_t offset);

int bw_sys_host_pci_scan(int (*found)(void *user, const struct bw_pci_id *id), void *user);

#endif
