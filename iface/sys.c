/* What every implementation of the OS seam shares. */
#include <bellwire/sys.h>

#include "iface/kfd.h"
#include "iface/sys_util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes fetched per read while the size of a file is not known (sysfs reports 4096 for everything). */
#define READ_STEP_BYTES 4096u

void bw_sys_retain(struct bw_sys *sys)
{
    __atomic_add_fetch(&sys->retained, 1, __ATOMIC_RELAXED);
}

void bw_sys_destroy(struct bw_sys *sys)
{
    if (!sys || __atomic_fetch_sub(&sys->retained, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    bw_kfd_process_end(sys);
    sys->ops->destroy(sys);
}

int bw_sys_read_text(struct bw_sys *sys, const char *path, uint64_t limit_bytes, char **text)
{
    *text = NULL;
    int fd = sys->ops->open(sys, path, 0);
    if (fd < 0)
        return fd;
    char *data = NULL;
    uint64_t length = 0;
    int rc = 0;
    for (;;) {
        char *grown = realloc(data, length + READ_STEP_BYTES + 1);
        if (!grown) {
            rc = -ENOMEM;
            break;
        }
        data = grown;
        int64_t got = sys->ops->read(sys, fd, data + length, READ_STEP_BYTES);
        if (got <= 0) {
            rc = (int)got;
            break;
        }
        length += (uint64_t)got;
        if (length > limit_bytes) {
            rc = -EFBIG;
            break;
        }
    }
    int close_rc = sys->ops->close(sys, fd);
    rc = rc ? rc : close_rc;
    if (rc) {
        free(data);
        return rc;
    }
    data[length] = 0;
    *text = data;
    return 0;
}

#define RETRY_NS       (10ull * 1000000000)
#define RETRY_SLEEP_NS 1000000ull
/* The same after one call has waited that long in vain, until one gets through: whoever then frees a hundred
 * buffers does not wait a hundred times. */
#define RETRY_OVERDUE_NS 10000000ull

int bw_sys_ioctl(struct bw_sys *sys, int fd, unsigned long request, void *argument, bool *overdue)
{
    bool late = __atomic_load_n(overdue, __ATOMIC_RELAXED);
    uint64_t start = 0, limit_ns = late ? RETRY_OVERDUE_NS : RETRY_NS;
    if (sys->wait_ns && sys->wait_ns < limit_ns)
        limit_ns = sys->wait_ns;
    for (;;) {
        int rc = sys->ops->ioctl(sys, fd, request, argument);
        bool again = rc == -EINTR || rc == -EAGAIN;
        uint64_t now = again ? sys->ops->clock_ns(sys) : 0;
        if (!start)
            start = now;
        if (!again || now - start > limit_ns) {
            if (again != late)
                __atomic_store_n(overdue, again, __ATOMIC_RELAXED);
            return rc;
        }
        if (rc == -EAGAIN)
            sys->ops->sleep_ns(sys, RETRY_SLEEP_NS);
    }
}
