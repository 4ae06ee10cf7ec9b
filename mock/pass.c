#include "mock/pass.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mock/tree.h"

void bw_mock_count(struct bw_sys *sys)
{
    __atomic_fetch_add(&sys->calls, 1, __ATOMIC_RELAXED);
}

static struct bw_sys *host_of(struct bw_sys *sys)
{
    return ((struct bw_mock_base *)sys)->host;
}

int64_t bw_mock_pass_read(struct bw_sys *sys, int fd, void *data, uint64_t size_bytes)
{
    bw_mock_count(sys);
    return host_of(sys)->ops->read(host_of(sys), fd, data, size_bytes);
}

int64_t bw_mock_pass_write(struct bw_sys *sys, int fd, const void *data, uint64_t size_bytes)
{
    bw_mock_count(sys);
    return host_of(sys)->ops->write(host_of(sys), fd, data, size_bytes);
}

int64_t bw_mock_pass_pread(struct bw_sys *sys, int fd, void *data, uint64_t size_bytes, uint64_t offset)
{
    bw_mock_count(sys);
    return host_of(sys)->ops->pread(host_of(sys), fd, data, size_bytes, offset);
}

int64_t bw_mock_pass_pwrite(struct bw_sys *sys, int fd, const void *data, uint64_t size_bytes,
                            uint64_t offset)
{
    bw_mock_count(sys);
    return host_of(sys)->ops->pwrite(host_of(sys), fd, data, size_bytes, offset);
}

int bw_mock_pass_protect(struct bw_sys *sys, struct bw_region *region, bool writable, bool executable)
{
    bw_mock_count(sys);
    return host_of(sys)->ops->protect(host_of(sys), region, writable, executable);
}

int bw_mock_pass_poll(struct bw_sys *sys, struct bw_poll_request *requests, uint32_t request_count,
                      uint64_t timeout_ns)
{
    bw_mock_count(sys);
    return host_of(sys)->ops->poll(host_of(sys), requests, request_count, timeout_ns);
}

int bw_mock_pass_lock(struct bw_sys *sys, int fd, int *holder_pid)
{
    bw_mock_count(sys);
    return host_of(sys)->ops->lock(host_of(sys), fd, holder_pid);
}

int64_t bw_mock_pass_size(struct bw_sys *sys, int fd)
{
    bw_mock_count(sys);
    return host_of(sys)->ops->size(host_of(sys), fd);
}

int bw_mock_pass_ring_open(struct bw_sys *sys, uint32_t entries, struct bw_ring **ring)
{
    bw_mock_count(sys);
    return host_of(sys)->ops->ring_open(host_of(sys), entries, ring);
}

int bw_mock_pass_ioctl(struct bw_sys *sys, int fd, unsigned long request, void *argument)
{
    bw_mock_count(sys);
    return host_of(sys)->ops->ioctl(host_of(sys), fd, request, argument);
}

uint64_t bw_mock_pass_clock_ns(struct bw_sys *sys)
{
    return host_of(sys)->ops->clock_ns(host_of(sys));
}

void bw_mock_pass_sleep_ns(struct bw_sys *sys, uint64_t duration_ns)
{
    bw_mock_count(sys);
    host_of(sys)->ops->sleep_ns(host_of(sys), duration_ns);
}

int bw_mock_open_text(const struct bw_mock_node *node)
{
    int fd = memfd_create("bellwire-mock-text", MFD_CLOEXEC);
    size_t length = strlen(node->text);
    if (fd < 0)
        return -errno;
    if (write(fd, node->text, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) < 0) {
        int rc = errno ? -errno : -EIO;
        close(fd);
        return rc;
    }
    return fd;
}
