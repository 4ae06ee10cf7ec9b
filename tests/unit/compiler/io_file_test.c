/* Goal: files are read whole from what they should be, a regular file or a pipe, and nothing else is waited
 * for; they are written whole or not at all. */
#include <bellwire/err.h>

#include "tests/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/io.h"

static const struct bw_pipe_waits short_waits = {50, 50};

struct place {
    char path[64]; /* a directory of this test */
    char file[128];
};

static struct place place_make(const char *file)
{
    struct place place = {.path = "/tmp/bw_file_XXXXXX"};
    BW_TRUE(mkdtemp(place.path) != NULL);
    snprintf(place.file, sizeof place.file, "%s/%s", place.path, file);
    return place;
}

static unsigned entries(const struct place *place)
{
    DIR *directory = opendir(place->path);
    unsigned count = 0;
    while (directory && readdir(directory))
        count++;
    closedir(directory);
    return count - 2;
}

static void place_remove(const struct place *place)
{
    unlink(place->file);
    BW_EQ(rmdir(place->path), 0); /* nothing else was left in it */
}

static int read_path(const char *path, uint64_t most, struct bw_err *err)
{
    uint8_t *data = NULL;
    uint64_t size_bytes = 0;
    int rc = bw_file_read(path, most, &data, &size_bytes, err);
    if (!rc)
        free(data);
    return rc;
}

static void what_is_no_file_is_named(void)
{
    struct place place = place_make("socket");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", place.file);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    BW_EQ(bind(server, (struct sockaddr *)&address, sizeof address), 0);
    const struct {
        const char *path;
        int code;
        const char *observed;
    } rows[] = {
        {place.path, -EISDIR, "a directory"},         {"/dev/zero", -EINVAL, "a character device"},
        {"/dev/null", -EINVAL, "a character device"}, {place.file, -ENXIO, ""},
        {"/nonexistent/file", -ENOENT, ""},           {"", -ENOENT, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bw_err err = {0};
        BW_EQ(read_path(rows[i].path, 1 << 20, &err), rows[i].code);
        BW_STR(err.what, *rows[i].path ? rows[i].path : "''");
        BW_STR(err.observed, rows[i].observed);
    }
    close(server);
    place_remove(&place);
}

static void limits_are_exact(void)
{
    struct place place = place_make("ten");
    struct bw_err err = {0};
    const struct bw_file_piece pieces[] = {{"01234", 5}, {NULL, 0}, {"56789", 5}};
    BW_OK(bw_file_write(place.file, pieces, 3, &err), &err);
    BW_EQ(read_path(place.file, 10, &err), 0);
    BW_EQ(read_path(place.file, 9, &err), -EFBIG);
    int ends[2];
    for (int room = 9; room <= 10; room++) {
        uint8_t *data = NULL;
        uint64_t size_bytes = 0;
        BW_EQ(pipe(ends), 0);
        BW_EQ(write(ends[1], "0123456789", 10), 10);
        close(ends[1]);
        BW_EQ(bw_fd_read(ends[0], "pipe", (uint64_t)room, short_waits, &data, &size_bytes, &err),
              room < 10 ? -EFBIG : 0);
        if (data) {
            BW_EQ(size_bytes, 10);
            BW_BYTES(data, "0123456789", 10);
        }
        free(data);
        close(ends[0]);
    }
    place_remove(&place);
}

/* A FIFO that nobody writes to, a writer that says nothing, one that goes away with nothing said. */
static void pipes_are_not_waited_for_for_ever(void)
{
    struct place place = place_make("fifo");
    struct bw_err err = {0};
    uint8_t *data = NULL;
    uint64_t size_bytes = 0;
    BW_EQ(mkfifo(place.file, 0600), 0);
    int reader = open(place.file, O_RDONLY | O_NONBLOCK);
    BW_EQ(bw_fd_read(reader, "fifo", 100, short_waits, &data, &size_bytes, &err), -ETIMEDOUT);
    BW_STR(err.what, "fifo: nobody writes to this pipe");
    BW_TRUE(err.elapsed_ns >= 50 * 1000000ull);
    int writer = open(place.file, O_WRONLY | O_NONBLOCK);
    BW_EQ(bw_fd_read(reader, "fifo", 100, short_waits, &data, &size_bytes, &err), -ETIMEDOUT);
    BW_STR(err.what, "fifo: its writer wrote nothing");
    BW_EQ(write(writer, "half", 4), 4);
    BW_EQ(bw_fd_read(reader, "fifo", 100, short_waits, &data, &size_bytes, &err), -ETIMEDOUT);
    close(writer);
    BW_OK(bw_fd_read(reader, "fifo", 100, short_waits, &data, &size_bytes, &err), &err);
    BW_EQ(size_bytes, 0);
    free(data);
    close(reader);
    place_remove(&place);
}

/* Writes 300000 bytes to the FIFO, in two parts with a pause. */
static void *writer_run(void *path)
{
    char block[300];
    memset(block, 'w', sizeof block);
    usleep(20000); /* after the reader is there */
    int fd = open(path, O_WRONLY);
    for (int i = 0; i < 1000; i++) {
        if (i == 500)
            usleep(20000);
        for (size_t done = 0; done < sizeof block;) {
            ssize_t put = write(fd, block + done, sizeof block - done);
            if (put <= 0)
                return NULL;
            done += (size_t)put;
        }
    }
    close(fd);
    return NULL;
}

static void a_late_writer_is_heard_out(void)
{
    struct place place = place_make("fifo");
    struct bw_err err = {0};
    uint8_t *data = NULL;
    uint64_t size_bytes = 0;
    pthread_t writer;
    BW_EQ(mkfifo(place.file, 0600), 0);
    BW_EQ(pthread_create(&writer, NULL, writer_run, place.file), 0);
    if (BW_OK(bw_file_read(place.file, 1 << 20, &data, &size_bytes, &err), &err)) {
        BW_EQ(size_bytes, 300000);
        uint64_t right = 0;
        for (uint64_t i = 0; i < size_bytes; i++)
            right += data[i] == 'w';
        BW_EQ(right, 300000);
        free(data);
    }
    pthread_join(writer, NULL);
    place_remove(&place);
}

static void write_leaves_all_or_nothing(void)
{
    struct place place = place_make("out");
    struct bw_err err = {0};
    const struct bw_file_piece old = {"old content", 11}, new = {"new", 3};
    BW_OK(bw_file_write(place.file, &old, 1, &err), &err);
    BW_EQ(chmod(place.file, 0640), 0);
    BW_OK(bw_file_write(place.file, &new, 1, &err), &err);
    struct stat status;
    BW_EQ(stat(place.file, &status), 0);
    BW_EQ(status.st_size, 3);
    BW_EQ(status.st_mode & 07777, 0640);

    /* A limit on file sizes stands for a full disk: the write fails half way. */
    struct rlimit limit, small;
    BW_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 100000;
    signal(SIGXFSZ, SIG_IGN);
    BW_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    char *large = calloc(1, 300000);
    const struct bw_file_piece too_large = {large, 300000};
    BW_EQ(bw_file_write(place.file, &too_large, 1, &err), -EFBIG);
    BW_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    free(large);
    BW_EQ(entries(&place), 1);
    BW_EQ(stat(place.file, &status), 0);
    BW_EQ(status.st_size, 3); /* what was there */
    place_remove(&place);
}

static void write_errors_keep_their_number(void)
{
    struct place place = place_make("link");
    struct bw_err err = {0};
    const struct bw_file_piece piece = {"text", 4};
    BW_EQ(bw_file_write("/dev/full", &piece, 1, &err), -ENOSPC);
    BW_STR(err.what, "/dev/full cannot be written");
    BW_OK(bw_file_write("/dev/null", &piece, 1, &err), &err);
    BW_EQ(bw_file_write(place.path, &piece, 1, &err), -EISDIR);
    BW_EQ(bw_file_write("/nonexistent/file", &piece, 1, &err), -ENOENT);
    BW_EQ(bw_file_write("/dev/null/file", &piece, 1, &err), -ENOTDIR);
    BW_EQ(bw_file_write("", &piece, 1, &err), -ENOENT);
    BW_EQ(mkfifo(place.file, 0600), 0);
    BW_EQ(bw_file_write(place.file, &piece, 1, &err), -ENXIO); /* nobody reads it */
    int reader = open(place.file, O_RDONLY | O_NONBLOCK);
    char got[8] = "";
    BW_OK(bw_file_write(place.file, &piece, 1, &err), &err);
    BW_EQ(read(reader, got, sizeof got - 1), 4);
    BW_STR(got, "text");
    close(reader);
    place_remove(&place);
}

/* A link stays a link, and what it points to is replaced. */
static void links_are_followed(void)
{
    struct place place = place_make("target");
    struct bw_err err = {0};
    char link[160];
    const struct bw_file_piece piece = {"text", 4};
    snprintf(link, sizeof link, "%s/link", place.path);
    BW_OK(bw_file_write(place.file, &piece, 0, &err), &err);
    BW_EQ(symlink("target", link), 0);
    BW_OK(bw_file_write(link, &piece, 1, &err), &err);
    struct stat status;
    BW_EQ(lstat(link, &status), 0);
    BW_TRUE(S_ISLNK(status.st_mode));
    BW_EQ(stat(place.file, &status), 0);
    BW_EQ(status.st_size, 4);
    unlink(link);
    place_remove(&place);
}

/* As a file system without files that have no name (FAT, NFS, many FUSE ones) refuses them; for this process.
 */
static void unnamed_files_refuse(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(77);
}

enum { PIECES = 40000 };

/* Writes for a few hundred milliseconds, over and over. */
static void write_for_ever(const struct place *place, int begun)
{
    static const char page[4096];
    struct bw_file_piece *pieces = calloc(PIECES, sizeof *pieces);
    for (int i = 0; i < PIECES; i++)
        pieces[i] = (struct bw_file_piece){page, sizeof page};
    while (write(begun, "b", 1) == 1 && !bw_file_write(place->file, pieces, PIECES, NULL) &&
           !bw_file_write(place->file, pieces, 1, NULL))
        ;
    _exit(1);
}

/* Whenever a signal ends the writer: the old content or the new, and nothing beside it. */
static void end_writer(int number, unsigned delay_us, bool unnamed)
{
    struct place place = place_make("out");
    const struct bw_file_piece old = {"old", 3};
    struct stat status = {0};
    char byte;
    int begun[2], end = 0;
    BW_OK(bw_file_write(place.file, &old, 1, NULL), NULL);
    BW_EQ(pipe(begun), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(number, SIG_DFL);
        if (!unnamed)
            unnamed_files_refuse();
        write_for_ever(&place, begun[1]);
    }
    close(begun[1]);
    ssize_t got;
    do
        got = read(begun[0], &byte, 1);
    while (got < 0 && errno == EINTR);
    BW_EQ(got, 1);
    usleep(delay_us);
    BW_EQ(kill(child, number), 0);
    BW_EQ(bw_test_wait(child, &end), child);
    close(begun[0]);
    BW_TRUE(WIFSIGNALED(end));
    BW_EQ(WTERMSIG(end), number);
    BW_EQ(entries(&place), 1);
    BW_EQ(stat(place.file, &status), 0);
    BW_TRUE(status.st_size == 3 || status.st_size == 4096 || status.st_size == (off_t)PIECES * 4096);
    place_remove(&place);
}

static void a_signal_leaves_nothing(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (unsigned i = 0; i < 12; i++) {
        end_writer(numbers[i % 3], i * 15000, true);
        end_writer(numbers[i % 3], i * 15000, false);
    }
}

/* Where a handler takes the signal, the file is written to its end. */
static void handled(int number)
{
    (void)number;
}

static void a_handler_is_no_end(void)
{
    struct place place = place_make("out");
    pid_t child = fork();
    if (child == 0) {
        static const char page[4096];
        struct bw_file_piece pieces[64];
        for (int i = 0; i < 64; i++)
            pieces[i] = (struct bw_file_piece){page, sizeof page};
        unnamed_files_refuse();
        signal(SIGALRM, handled);
        ualarm(50, 50);
        int rc = 0;
        for (int i = 0; i < 200 && !rc; i++)
            rc = bw_file_write(place.file, pieces, 64, NULL);
        _exit(rc != 0);
    }
    int end = 0;
    struct stat status = {0};
    BW_EQ(bw_test_wait(child, &end), child);
    BW_EQ(end, 0);
    BW_EQ(entries(&place), 1);
    BW_EQ(stat(place.file, &status), 0);
    BW_EQ(status.st_size, 64 * 4096);
    place_remove(&place);
}

BW_TEST_MAIN("compiler.io_file", {"what_is_no_file_is_named", what_is_no_file_is_named},
             {"limits_are_exact", limits_are_exact},
             {"pipes_are_not_waited_for_for_ever", pipes_are_not_waited_for_for_ever},
             {"a_late_writer_is_heard_out", a_late_writer_is_heard_out},
             {"write_leaves_all_or_nothing", write_leaves_all_or_nothing},
             {"write_errors_keep_their_number", write_errors_keep_their_number},
             {"links_are_followed", links_are_followed}, {"a_signal_leaves_nothing", a_signal_leaves_nothing},
             {"a_handler_is_no_end", a_handler_is_no_end})
