/* Files that are there whole or not at all: see io.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/number.h"
#include "compiler/io.h"

enum {
    DRAIN_WAIT_MS = 30000,     /* a pipe's reader may compute first; as long as devices may take by default */
    STRETCH_BYTES = 1 << 20,   /* a millisecond's work: how long a signal may have to wait */
    TEMPORARY_NAMES_MAX = 100, /* left by processes of our number that were killed */
};

/* ---- signals ---- */

static void signals_hold(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, before);
}

static void signals_release(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Whether one that is held will end this process. */
static bool ending(void)
{
    static const int deadly[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,   SIGALRM, SIGUSR1,
                                 SIGUSR2, SIGXCPU, SIGPROF, SIGVTALRM, SIGPIPE, SIGXFSZ};
    sigset_t pending;
    struct sigaction action;
    sigpending(&pending);
    for (size_t i = 0; i < BW_COUNT_OF(deadly); i++)
        if (sigismember(&pending, deadly[i]) && !sigaction(deadly[i], NULL, &action) &&
            action.sa_handler == SIG_DFL)
            return true;
    return false;
}

/* ---- bytes ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int bw_fd_wait(int fd, short events, int wait_ms)
{
    struct pollfd wait = {.fd = fd, .events = events};
    int64_t end_ms = now_ms() + wait_ms, left_ms = wait_ms;
    int ready;
    do {
        ready = poll(&wait, 1, (int)(left_ms > 0 ? left_ms : 0));
        left_ms = end_ms - now_ms();
    } while (ready < 0 && errno == EINTR && left_ms > 0);
    return ready >= 0 ? ready : errno == EINTR ? 0 : -errno;
}

/* A pipe may be full for a while; -errno, without an error record. `held`: signals are, and one that ends the
 * process is -EINTR. */
static int write_all(int fd, const struct bw_file_piece *piece, bool held)
{
    for (uint64_t done = 0; done < piece->size_bytes;) {
        uint64_t rest_bytes = piece->size_bytes - done;
        if (held && ending())
            return -EINTR;
        ssize_t put = write(fd, (const char *)piece->data + done,
                            rest_bytes < STRETCH_BYTES ? rest_bytes : STRETCH_BYTES);
        int code = put < 0 ? errno : 0;
        if (code == EAGAIN && bw_fd_wait(fd, POLLOUT, DRAIN_WAIT_MS) == 0)
            return -ETIMEDOUT;
        if (code && code != EINTR && code != EAGAIN)
            return -code;
        done += put > 0 ? (uint64_t)put : 0;
    }
    return 0;
}

static int write_pieces(int fd, const struct bw_file_piece *pieces, uint32_t piece_count, bool held)
{
    int code = 0;
    for (uint32_t i = 0; i < piece_count && !code; i++)
        code = write_all(fd, &pieces[i], held);
    return code;
}

/* ---- names ---- */

static int folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* Gives a file a name beside path that nobody has: the one open at fd, or with -1 a new one, whose descriptor
 * it returns. -errno; *name is the caller's. */
static int temporary_name(const char *path, int fd, uint32_t mode, char **name)
{
    char file[32];
    int rc = -1;
    *name = NULL;
    snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
    for (unsigned i = 0; i < TEMPORARY_NAMES_MAX; i++) {
        free(*name);
        if (asprintf(name, "%.*s.bellwire-%d-%u", folder_bytes(path), path, (int)getpid(), i) < 0) {
            *name = NULL;
            return -ENOMEM;
        }
        rc = fd < 0 ? open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
                    : linkat(AT_FDCWD, file, AT_FDCWD, *name, AT_SYMLINK_FOLLOW);
        if (rc >= 0 || errno != EEXIST)
            break;
    }
    return rc < 0 ? -errno : rc;
}

static int rename_or_remove(const char *temporary, const char *path)
{
    int code = rename(temporary, path) ? -errno : 0;
    if (code)
        unlink(temporary);
    return code;
}

/* Gives the file without a name that one, in the place of what stands there. Only a rename does that, from a
 * name that lives for a moment; no signal falls into it. */
static int name_give(int fd, const char *path)
{
    char file[32], *temporary = NULL;
    sigset_t before;
    snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
    if (!linkat(AT_FDCWD, file, AT_FDCWD, path, AT_SYMLINK_FOLLOW))
        return 0;
    if (errno != EEXIST)
        return -errno;
    signals_hold(&before);
    int code = temporary_name(path, fd, 0, &temporary);
    if (!code)
        code = rename_or_remove(temporary, path);
    signals_release(&before);
    free(temporary);
    return code;
}

/* ---- the two ways ---- */

struct put {
    const char *path;
    const struct stat *old; /* whose mode the file keeps, or NULL */
    uint32_t mode;
    const struct bw_file_piece *pieces;
    uint32_t piece_count;
};

static void mode_keep(const struct put *put, int fd)
{
    if (put->old)
        fchmod(fd, put->old->st_mode & 07777); /* who may not keep the mode gets the usual one */
}

/* Through a file that has no name until it is whole (open(2), O_TMPFILE): whoever ends this process, nothing
 * is left. -EOPNOTSUPP where the file system, or a missing /proc, does not have that. */
static int put_unnamed(const struct put *put)
{
    char *folder = NULL;
    int bytes = folder_bytes(put->path);
    if (asprintf(&folder, "%.*s", bytes ? bytes : 1, bytes ? put->path : ".") < 0)
        return -ENOMEM;
    int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, put->mode);
    free(folder);
    if (fd < 0)
        return -EOPNOTSUPP;
    mode_keep(put, fd);
    int code = write_pieces(fd, put->pieces, put->piece_count, false);
    if (!code && name_give(fd, put->path))
        code = -EOPNOTSUPP;
    close(fd);
    return code;
}

/* Through a file of another name. A signal that ends this process waits until that one is gone. */
static int put_named(const struct put *put)
{
    char *temporary = NULL;
    sigset_t before;
    signals_hold(&before);
    int fd = temporary_name(put->path, -1, put->mode, &temporary), code = fd < 0 ? fd : 0;
    if (!code) {
        mode_keep(put, fd);
        code = write_pieces(fd, put->pieces, put->piece_count, true);
        if (close(fd) && !code) /* an error may show as late as that */
            code = -errno;
        if (code)
            unlink(temporary);
        else
            code = rename_or_remove(temporary, put->path);
    }
    signals_release(&before);
    free(temporary);
    return code;
}

/* ---- names of open descriptors ---- */

static int descriptor_of(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"};
    uint64_t number;
    if (!strcmp(path, "/dev/stdout"))
        return STDOUT_FILENO;
    if (!strcmp(path, "/dev/stderr"))
        return STDERR_FILENO;
    for (size_t i = 0; i < BW_COUNT_OF(folders); i++) {
        size_t bytes = strlen(folders[i]);
        if (!strncmp(path, folders[i], bytes) && !bw_number_parse(path + bytes, &number) && number <= INT_MAX)
            return (int)number;
    }
    return -1;
}

/* Standard output or error, whatever name of it path is: of another process's descriptor, of a link, the
 * file's own. */
static int stream_of(const char *path)
{
    struct stat file, stream;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (!stat(path, &file) && !fstat(fd, &stream) && file.st_dev == stream.st_dev &&
            file.st_ino == stream.st_ino)
            return fd;
    return -1;
}

int bw_file_redirection(const char *path)
{
    struct stat status;
    int fd = descriptor_of(path);
    if (fd < 0)
        fd = stream_of(path);
    return fd >= 0 && !fstat(fd, &status) && (S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode)) ? fd : -1;
}

int bw_file_put(const char *path, uint32_t mode, const struct bw_file_piece *pieces, uint32_t piece_count)
{
    struct stat status;
    int fd = bw_file_redirection(path);
    if (fd >= 0) /* where it stands: others write there, too */
        return write_pieces(fd, pieces, piece_count, false);
    bool exists = stat(path, &status) == 0;
    if (!exists && errno != ENOENT)
        return -errno;
    if (exists && !S_ISREG(status.st_mode)) { /* as it is. A FIFO would wait for its reader */
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        int code = fd < 0 ? -errno : write_pieces(fd, pieces, piece_count, false);
        if (fd >= 0 && close(fd) && !code)
            code = -errno;
        return code;
    }
    char *target = exists ? realpath(path, NULL) : NULL; /* a link stays one */
    struct put put = {target ? target : path, exists ? &status : NULL, mode, pieces, piece_count};
    int code = put_unnamed(&put);
    if (code == -EOPNOTSUPP)
        code = put_named(&put);
    free(target);
    return code;
}

int bw_file_write(const char *path, const struct bw_file_piece *pieces, uint32_t piece_count,
                  struct bw_err *err)
{
    int code = bw_file_put(path, 0666, pieces, piece_count);
    if (!code)
        return 0;
    bw_fail(err, code, "file", "%s cannot be written", path);
    bw_err_hint(err, "%s", strerrordesc_np(-code));
    return code;
}
