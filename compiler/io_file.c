/* Whole files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/io.h"

int bw_file_read(const char *path, uint64_t size_bytes_max, uint8_t **data, uint64_t *size_bytes,
                 struct bw_err *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0; /* a FIFO would wait for its writer */
    if (fd < 0)
        return bw_fail(err, -errno, "file", "%s", path);
    if (fstat(fd, &status) || !S_ISREG(status.st_mode))
        rc = bw_fail(err, -EINVAL, "file", "%s is no regular file", path);
    else if ((uint64_t)status.st_size > size_bytes_max)
        rc = bw_fail(err, -EFBIG, "file", "%s has more than %llu bytes", path,
                     (unsigned long long)size_bytes_max);
    uint64_t wanted = rc ? 0 : (uint64_t)status.st_size, have = 0;
    uint8_t *bytes = rc ? NULL : malloc(wanted ? wanted : 1);
    if (!rc && !bytes)
        rc = bw_fail(err, -ENOMEM, "file", "%s", path);
    while (!rc && have < wanted) {
        ssize_t got = read(fd, bytes + have, wanted - have);
        if (got < 0 && errno != EINTR)
            rc = bw_fail(err, -errno, "file", "%s", path);
        else if (got == 0)
            rc = bw_fail(err, -EIO, "file", "%s became shorter while it was read", path);
        have += got > 0 ? (uint64_t)got : 0;
    }
    close(fd);
    if (rc) {
        free(bytes);
        return rc;
    }
    *data = bytes;
    *size_bytes = wanted;
    return 0;
}
