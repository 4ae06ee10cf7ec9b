/* The real operating system behind struct bw_sys. */
#include "iface/sys_host.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/vec.h"

/* Between F_SETLK saying "taken" and F_GETLK asking by whom the holder may let go; then the lock is tried
 * again. */
#define LOCK_TRIES_MAX 16

#define NS_PER_SECOND 1000000000ull

/* The kernel transfers at most this much per call (MAX_RW_COUNT of include/linux/fs.h, 2 GiB less a page). */
#define TRANSFER_BYTES_MAX 0x7ffff000ull

static void count_call(struct bw_sys *sys)
{
    __atomic_fetch_add(&sys->calls, 1, __ATOMIC_RELAXED);
}

static int host_open(struct bw_sys *sys, const char *path, int flags)
{
    count_call(sys);
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, 0666);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

static int host_close(struct bw_sys *sys, int fd)
{
    count_call(sys);
    /* Linux gives the descriptor back even when close is interrupted: closing again could hit a stranger's.
     */
    return close(fd) && errno != EINTR ? -errno : 0;
}

static size_t transfer_size(uint64_t size_bytes)
{
    return (size_t)(size_bytes < TRANSFER_BYTES_MAX ? size_bytes : TRANSFER_BYTES_MAX);
}

/* Repeats one transfer while signals interrupt it; declares nothing, the caller returns the count. */
#define RETRY(call)                        \
    do {                                   \
        ssize_t got;                       \
        do                                 \
            got = (call);                  \
        while (got < 0 && errno == EINTR); \
        return got < 0 ? -errno : got;     \
    } while (0)

static int64_t host_read(struct bw_sys *sys, int fd, void *data, uint64_t size_bytes)
{
    count_call(sys);
    RETRY(read(fd, data, transfer_size(size_bytes)));
}

static int64_t host_write(struct bw_sys *sys, int fd, const void *data, uint64_t size_bytes)
{
    count_call(sys);
    RETRY(write(fd, data, transfer_size(size_bytes)));
}

static int64_t host_pread(struct bw_sys *sys, int fd, void *data, uint64_t size_bytes, uint64_t offset)
{
    count_call(sys);
    RETRY(pread(fd, data, transfer_size(size_bytes), (off_t)offset));
}

static int64_t host_pwrite(struct bw_sys *sys, int fd, const void *data, uint64_t size_bytes, uint64_t offset)
{
    count_call(sys);
    RETRY(pwrite(fd, data, transfer_size(size_bytes), (off_t)offset));
}

static int host_ioctl(struct bw_sys *sys, int fd, unsigned long request, void *argument)
{
    count_call(sys);
    int value = ioctl(fd, request, argument);
    return value < 0 ? -errno : value;
}

static void *reserve_address(void *address, uint64_t size_bytes)
{
    int fixed = address ? MAP_FIXED : 0;
    return mmap(address, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

static void *map_memory(const struct bw_map_request *request)
{
    void *address = (void *)(uintptr_t)request->fixed_address;
    if (request->reserve)
        return reserve_address(address, request->size_bytes);
    int flags = request->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    if (address)
        flags |= MAP_FIXED;
    return mmap(address, request->size_bytes, PROT_READ | (request->writable ? PROT_WRITE : 0), flags,
                request->fd, (off_t)request->offset);
}

static int advise_fork(void *memory, const struct bw_map_request *request)
{
    if (request->dont_fork && madvise(memory, request->size_bytes, MADV_DONTFORK))
        return -errno;
    if (request->wipe_on_fork && madvise(memory, request->size_bytes, MADV_WIPEONFORK))
        return -errno;
    return 0;
}

static int host_map(struct bw_sys *sys, const struct bw_map_request *request, struct bw_region *region)
{
    count_call(sys);
    memset(region, 0, sizeof *region);
    if (!request->size_bytes || request->size_bytes > SIZE_MAX)
        return -EINVAL;
    void *memory = map_memory(request);
    if (memory == MAP_FAILED)
        return -errno;
    int rc = advise_fork(memory, request);
    if (rc) {
        /* A fixed mapping took the place of a reservation; leaving a hole would let a stranger's mapping in.
         */
        if (!request->fixed_address || reserve_address(memory, request->size_bytes) == MAP_FAILED)
            munmap(memory, request->size_bytes);
        return rc;
    }
    region->base = memory;
    region->size_bytes = request->size_bytes;
    region->memory_type = request->memory_type;
    return 0;
}

static int host_unmap(struct bw_sys *sys, struct bw_region *region)
{
    count_call(sys);
    int rc = munmap((void *)(uintptr_t)region->base, region->size_bytes) ? -errno : 0;
    if (!rc)
        memset(region, 0, sizeof *region);
    return rc;
}

static int host_protect(struct bw_sys *sys, struct bw_region *region, bool writable, bool executable)
{
    count_call(sys);
    if (writable && executable)
        return -EINVAL;
    int access = PROT_READ | (writable ? PROT_WRITE : 0) | (executable ? PROT_EXEC : 0);
    return mprotect((void *)(uintptr_t)region->base, region->size_bytes, access) ? -errno : 0;
}

static uint64_t host_clock_ns(struct bw_sys *sys)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static uint64_t deadline_after(struct bw_sys *sys, uint64_t duration_ns)
{
    uint64_t now = host_clock_ns(sys);
    return duration_ns > UINT64_MAX - now ? UINT64_MAX : now + duration_ns;
}

static struct timespec to_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SECOND), .tv_nsec = (long)(ns % NS_PER_SECOND)};
}

_Static_assert(sizeof(struct bw_poll_request) == sizeof(struct pollfd),
               "poll requests are passed as they are");
_Static_assert(offsetof(struct bw_poll_request, revents) == offsetof(struct pollfd, revents), "same layout");

static int host_poll(struct bw_sys *sys, struct bw_poll_request *requests, uint32_t count,
                     uint64_t timeout_ns)
{
    count_call(sys);
    uint64_t deadline = deadline_after(sys, timeout_ns);
    for (;;) {
        uint64_t now = host_clock_ns(sys);
        struct timespec left = to_timespec(deadline > now ? deadline - now : 0);
        int ready = ppoll((struct pollfd *)requests, count, deadline == UINT64_MAX ? NULL : &left, NULL);
        if (ready >= 0)
            return ready;
        if (errno != EINTR)
            return -errno;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int host_list(struct bw_sys *sys, const char *path, int (*entry)(void *user, const char *name),
                     void *user)
{
    count_call(sys);
    DIR *directory = opendir(path);
    if (!directory)
        return -errno;
    struct bw_arena arena = {0};
    BW_VEC(char *) names = {0};
    int rc = 0;
    for (;;) {
        errno = 0;
        const struct dirent *found = readdir(directory);
        if (!found) {
            rc = -errno;
            break;
        }
        if (!strcmp(found->d_name, ".") || !strcmp(found->d_name, ".."))
            continue;
        char *name = bw_arena_string(&arena, found->d_name);
        if (!name || bw_vec_push(&names, name)) {
            rc = -ENOMEM;
            break;
        }
    }
    closedir(directory);
    if (!rc && names.count)
        qsort(names.data, names.count, sizeof names.data[0], by_name);
    for (size_t i = 0; !rc && i < names.count; i++)
        rc = entry(user, names.data[i]);
    bw_vec_free(&names);
    bw_arena_free(&arena);
    return rc;
}

static void host_sleep_ns(struct bw_sys *sys, uint64_t duration_ns)
{
    count_call(sys);
    struct timespec until = to_timespec(deadline_after(sys, duration_ns));
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static int host_lock(struct bw_sys *sys, int fd, int *holder_pid)
{
    count_call(sys);
    *holder_pid = 0;
    for (int tries = 0; tries < LOCK_TRIES_MAX; tries++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (!fcntl(fd, F_SETLK, &lock))
            return 0;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EACCES)
            return -errno;
        if (fcntl(fd, F_GETLK, &lock))
            return -errno;
        if (lock.l_type != F_UNLCK) {
            *holder_pid = (int)lock.l_pid;
            return -EAGAIN;
        }
    }
    return -EAGAIN;
}

static int host_pci_scan(struct bw_sys *sys, int (*found)(void *user, const struct bw_pci_id *id), void *user)
{
    count_call(sys);
    return bw_sys_host_pci_scan(found, user);
}

static int64_t host_size(struct bw_sys *sys, int fd)
{
    struct stat status;
    count_call(sys);
    if (fstat(fd, &status))
        return -errno;
    if (S_ISREG(status.st_mode))
        return status.st_size;
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    off_t end = S_ISBLK(status.st_mode) ? lseek(fd, 0, SEEK_END) : -1;
    return end >= 0 ? end : S_ISBLK(status.st_mode) ? -errno : -ESPIPE;
}

static int host_same_file(struct bw_sys *sys, int fd, int other_fd)
{
    struct stat status, other;
    count_call(sys);
    if (fstat(fd, &status) || fstat(other_fd, &other))
        return -errno;
    return status.st_dev == other.st_dev && status.st_ino == other.st_ino;
}

static int host_ring_open(struct bw_sys *sys, uint32_t entries, struct bw_ring **ring)
{
    count_call(sys);
    int rc = bw_sys_host_ring_open(entries, ring);
    return rc ? bw_sys_host_threads_open(entries, ring) : 0;
}

static int host_node(struct bw_sys *sys, const struct bw_node_request *request)
{
    count_call(sys);
    return bw_sys_host_node(request);
}

static void host_destroy(struct bw_sys *sys)
{
    free(sys);
}

static const struct bw_sys_ops host_ops = {
    .open = host_open,
    .close = host_close,
    .read = host_read,
    .write = host_write,
    .pread = host_pread,
    .pwrite = host_pwrite,
    .ioctl = host_ioctl,
    .map = host_map,
    .unmap = host_unmap,
    .protect = host_protect,
    .poll = host_poll,
    .list = host_list,
    .clock_ns = host_clock_ns,
    .sleep_ns = host_sleep_ns,
    .lock = host_lock,
    .pci_scan = host_pci_scan,
    .size = host_size,
    .same_file = host_same_file,
    .ring_open = host_ring_open,
    .node = host_node,
    .destroy = host_destroy,
};

int bw_sys_host_create(struct bw_sys **sys)
{
    *sys = NULL;
    struct bw_sys *host = calloc(1, sizeof *host);
    if (!host)
        return -ENOMEM;
    host->ops = &host_ops;
    *sys = host;
    return 0;
}
