/* Files read whole: see io.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/io.h"

enum {
    WRITER_WAIT_MS = 2000, /* a script starts the writer of a FIFO in the background, and then us */
    BYTE_WAIT_MS = 30000, /* a writer may compute or download first; as long as devices may take by default */
    CHUNK_BYTES = 1 << 16, /* what a pipe holds */
};

void bw_file_err_name(const char *path, struct bw_err *err)
{
    enum { PATH_LENGTH_MIN = 24, PATH_LENGTH_MAX = 80 };
    static const char more[] = "...", colon[] = ": ";
    if (!err)
        return;
    size_t taken = strlen(err->what) + sizeof more + sizeof colon - 1, most = PATH_LENGTH_MIN;
    if (taken + PATH_LENGTH_MIN < sizeof err->what)
        most = sizeof err->what - taken;
    if (most > PATH_LENGTH_MAX)
        most = PATH_LENGTH_MAX;
    size_t length = strlen(path), cut = length > most ? length - most : 0;
    while (cut && ((unsigned char)path[cut] & 0xc0) == 0x80) /* not within a character */
        cut++;
    bw_err_prefix(err, "%s%s%s", cut ? more : "", path + cut, colon);
}

static const char *kind_name(mode_t mode)
{
    return S_ISREG(mode)    ? "a regular file"
           : S_ISDIR(mode)  ? "a directory"
           : S_ISCHR(mode)  ? "a character device"
           : S_ISBLK(mode)  ? "a block device"
           : S_ISFIFO(mode) ? "a pipe"
                            : "a socket";
}

int bw_file_open(const char *path, bool pipes, int *fd, uint64_t *size_bytes, struct bw_err *err)
{
    struct stat status;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a FIFO would wait for its writer */
    int code = *fd < 0 || fstat(*fd, &status) ? -errno : 0;
    if (!code) {
        bool good = S_ISREG(status.st_mode) || (pipes && S_ISFIFO(status.st_mode));
        code = good ? 0 : S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
        *size_bytes = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
    }
    if (!code)
        return 0;
    bw_fail(err, code, "file", "%s", *path ? path : "''");
    if (*fd >= 0) {
        bw_err_expected(err, pipes ? "a regular file or a pipe" : "a regular file");
        bw_err_observed(err, "%s", kind_name(status.st_mode));
        close(*fd);
    } else {
        bw_err_hint(err, "%s", strerrordesc_np(-code));
    }
    return code;
}

/* Waits until a read gives something. 0, or -ETIMEDOUT with what did not come. */
static int byte_wait(int fd, const char *name, int wait_ms, bool writer, struct bw_err *err)
{
    int ready = bw_fd_wait(fd, POLLIN, wait_ms);
    if (ready)
        return ready < 0 ? bw_fail(err, ready, "file", "%s", name) : 0;
    bw_fail(err, -ETIMEDOUT, "file",
            writer ? "%s: its writer wrote nothing" : "%s: nobody writes to this pipe", name);
    if (err)
        err->elapsed_ns = (uint64_t)wait_ms * 1000000;
    return -ETIMEDOUT;
}

/* One read into [bytes, bytes + room): what came, 0 at the end, -errno. */
static ssize_t read_some(int fd, const char *name, char *bytes, uint64_t room, struct bw_pipe_waits waits,
                         bool begun, struct bw_err *err)
{
    for (bool waited = begun;;) {
        ssize_t got = read(fd, bytes, room);
        if (got > 0 || (got == 0 && (waited || waits.writer_ms == BW_WAIT_FOREVER_MS)))
            return got;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno != EAGAIN)
            return bw_fail(err, -errno, "file", "%s", name);
        int code = byte_wait(fd, name, got ? waits.byte_ms : waits.writer_ms, got != 0, err);
        if (code)
            return code;
        waited = true;
    }
}

/* room_bytes: how much probably comes. */
static int read_all(int fd, const char *name, uint64_t size_bytes_max, struct bw_pipe_waits waits,
                    uint64_t room_bytes, uint8_t **data, uint64_t *size_bytes, struct bw_err *err)
{
    uint64_t size = 0, capacity = 0;
    char *bytes = NULL;
    ssize_t got;
    do {
        if (size == capacity) {
            capacity = capacity ? capacity * 2 : room_bytes;
            char *grown = realloc(bytes, capacity);
            if (!grown) {
                free(bytes);
                return bw_fail(err, -ENOMEM, "file", "%s: room for %llu bytes", name,
                               (unsigned long long)capacity);
            }
            bytes = grown;
        }
        got = read_some(fd, name, bytes + size, capacity - size, waits, size > 0, err);
        size += got > 0 ? (uint64_t)got : 0;
        if (size > size_bytes_max)
            got = bw_fail(err, -EFBIG, "file", "%s has more than %llu bytes", name,
                          (unsigned long long)size_bytes_max);
    } while (got > 0);
    if (got < 0) {
        free(bytes);
        return (int)got;
    }
    *data = (uint8_t *)bytes;
    *size_bytes = size;
    return 0;
}

int bw_fd_read(int fd, const char *name, uint64_t size_bytes_max, struct bw_pipe_waits waits, uint8_t **data,
               uint64_t *size_bytes, struct bw_err *err)
{
    return read_all(fd, name, size_bytes_max, waits, CHUNK_BYTES, data, size_bytes, err);
}

int bw_file_read(const char *path, uint64_t size_bytes_max, uint8_t **data, uint64_t *size_bytes,
                 struct bw_err *err)
{
    static const struct bw_pipe_waits waits = {WRITER_WAIT_MS, BYTE_WAIT_MS};
    struct stat status;
    uint64_t expected_bytes = 0;
    int fd, rc = bw_file_open(path, true, &fd, &expected_bytes, err);
    if (rc)
        return rc;
    bool pipe = fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
    uint64_t most = pipe && size_bytes_max > BW_PIPE_BYTES_MAX ? BW_PIPE_BYTES_MAX : size_bytes_max;
    if (expected_bytes > most)
        rc = bw_fail(err, -EFBIG, "file", "%s has more than %llu bytes", path, (unsigned long long)most);
    else /* one more: room for the read that finds the end */
        rc = read_all(fd, path, most, waits, pipe ? CHUNK_BYTES : expected_bytes + 1, data, size_bytes, err);
    close(fd);
    return rc;
}
