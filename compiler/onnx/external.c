/* Opening the files that hold a model's external data. A model comes from anywhere: it must not make us read
 * what does not belong to it, or wait. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiler/onnx/proto.h"

enum { PATH_BYTES_MAX = 4096, OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

/* Relative, and no part of it goes up. What symbolic links do is up to the kernel. */
static bool stays_below(const char *location)
{
    if (!*location || *location == '/')
        return false;
    for (const char *part = location; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (!strncmp(part, "..", 2) && (part[2] == '/' || !part[2]))
            return false;
    return true;
}

/* openat2(2): EXDEV is the kernel's word for a link that leads out. EAGAIN: a directory moved meanwhile. */
static int open_resolved(int directory, const char *location)
{
    enum { TRIES = 8 };
    struct open_how how = {.flags = OPEN_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int fd = -EAGAIN;
    for (int i = 0; fd == -EAGAIN && i < TRIES; i++) {
        fd = (int)syscall(SYS_openat2, directory, location, &how, sizeof how);
        fd = fd < 0 ? -errno : fd;
    }
    return fd == -EXDEV ? -EACCES : fd;
}

/* One directory after the other, none through a symbolic link. */
static int open_by_component(int directory, char *location)
{
    int at = dup(directory);
    for (char *slash; at >= 0 && (slash = strchr(location, '/')); location = slash + 1) {
        *slash = 0;
        if (!*location)
            continue;
        int next = openat(at, location, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int code = errno;
        close(at);
        at = next;
        errno = code;
    }
    if (at < 0)
        return errno == ENOTDIR || errno == ELOOP ? -EACCES : -errno;
    int fd = openat(at, location, OPEN_FLAGS | O_NOFOLLOW), code = errno;
    close(at);
    return fd >= 0 ? fd : code == ELOOP ? -EACCES : -code;
}

static int check_regular(int fd, uint64_t *size_bytes)
{
    struct stat status;
    if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
        close(fd);
        return -EINVAL;
    }
    *size_bytes = (uint64_t)status.st_size;
    return fd;
}

int bw_onnx_open_beneath(const char *directory, struct bw_bytes location, bool by_component,
                         uint64_t *size_bytes)
{
    char path[PATH_BYTES_MAX];
    if (location.size_bytes >= sizeof path)
        return -ENAMETOOLONG;
    if (location.size_bytes)
        memcpy(path, location.data, location.size_bytes);
    path[location.size_bytes] = 0;
    if (strlen(path) != location.size_bytes)
        return -EINVAL;
    if (!stays_below(path))
        return -EACCES;
    int root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    int fd = by_component ? -ENOSYS : open_resolved(root, path);
    if (fd == -ENOSYS || fd == -EPERM) /* a kernel before 5.6, or a sandbox that has not heard of it */
        fd = open_by_component(root, path);
    close(root);
    return fd < 0 ? fd : check_regular(fd, size_bytes);
}
