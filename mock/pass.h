/* Calls that every mock machine hands on to the host, as members for its struct bw_sys_ops. */
#ifndef BW_MOCK_PASS_H
#define BW_MOCK_PASS_H

#include <bellwire/sys.h>

/* How each machine's structure begins. */
struct bw_mock_base {
    struct bw_sys sys;
    struct bw_sys *host;
};

void bw_mock_count(struct bw_sys *sys);
int64_t bw_mock_pass_read(struct bw_sys *sys, int fd, void *data, uint64_t size_bytes);
int64_t bw_mock_pass_write(struct bw_sys *sys, int fd, const void *data, uint64_t size_bytes);
int64_t bw_mock_pass_pread(struct bw_sys *sys, int fd, void *data, uint64_t size_bytes, uint64_t offset);
int64_t bw_mock_pass_pwrite(struct bw_sys *sys, int fd, const void *data, uint64_t size_bytes,
                            uint64_t offset);
int bw_mock_pass_protect(struct bw_sys *sys, struct bw_region *region, bool writable, bool executable);
int bw_mock_pass_poll(struct bw_sys *sys, struct bw_poll_request *requests, uint32_t request_count,
                      uint64_t timeout_ns);
int bw_mock_pass_lock(struct bw_sys *sys, int fd, int *holder_pid);
int64_t bw_mock_pass_size(struct bw_sys *sys, int fd);
int bw_mock_pass_ring_open(struct bw_sys *sys, uint32_t entries, struct bw_ring **ring);
int bw_mock_pass_ioctl(struct bw_sys *sys, int fd, unsigned long request, void *argument);
uint64_t bw_mock_pass_clock_ns(struct bw_sys *sys);
void bw_mock_pass_sleep_ns(struct bw_sys *sys, uint64_t duration_ns);

struct bw_mock_node;
/* A text file of a tree as a small memfd, so that read, pread, poll and write work on it like on any file. */
int bw_mock_open_text(const struct bw_mock_node *node);

#endif
