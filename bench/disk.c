/* A file into a device's memory: reading it alone, copying alone, and both, where each half of the staging
 * memory is read while the other one is copied. The file is made here, in $TMPDIR, and has no name by the
 * time that it is measured; its pages are dropped from the page cache before each run, and what was read past
 * the page cache is told. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/rng.h"
#include "bench/collective.h"
#include "bench/walk.h"
#include "drivers/disk/disk.h"
#include "tools/print.h"

enum {
    REPEATS_DEFAULT = 5,         /* the median of which is told */
    BYTES_MIN_DEFAULT = 4 << 20, /* one slot of staging memory */
    BYTES_MAX_DEFAULT = 256 << 20,
    WRITE_BYTES = 1 << 20, /* at once; a multiple of 8 */
};

struct bench {
    struct bw_ctx *ctx;
    struct bw_device *disk;
    struct bw_bench_devices devices;
    struct bw_bench_sizes sizes;
    uint32_t repeats;
    int fd;
    cJSON *rows;
    FILE *text;
};

/* What is timed: a copy of so many bytes, linked. */
struct step {
    struct bw_linked_graph *linked;
    double *rates; /* of each repeat, in GB/s */
    double gb_per_s;
};

enum { STEPS = 3 }; /* file, copy, both */

static int step_run(const struct bench *bench, struct step *step, uint32_t repeat, uint64_t size_bytes,
                    struct bw_err *err)
{
    struct bw_sys *sys = bw_ctx_sys(bench->ctx);
    (void)posix_fadvise(bench->fd, 0, 0, POSIX_FADV_DONTNEED);
    uint64_t begin_ns = sys->ops->clock_ns(sys);
    int rc = bw_bench_replay_once(step->linked, err);
    uint64_t elapsed_ns = sys->ops->clock_ns(sys) - begin_ns;
    step->rates[repeat] = bw_bench_rate(size_bytes, elapsed_ns);
    return rc;
}

/* Medians of the repeats after one run to warm up, in turns, so that what else the machine does hits all
 * alike. */
static int steps_measure(const struct bench *bench, struct step steps[STEPS], uint64_t size_bytes,
                         struct bw_err *err)
{
    int rc = 0;
    for (uint32_t repeat = 0; repeat <= bench->repeats && !rc; repeat++) {
        for (int i = 0; i < STEPS && !rc; i++)
            rc = step_run(bench, &steps[i], repeat ? repeat - 1 : 0, size_bytes, err);
    }
    for (int i = 0; i < STEPS; i++)
        steps[i].gb_per_s = bw_bench_median(steps[i].rates, bench->repeats);
    return rc;
}

static uint64_t word_at(uint64_t offset)
{
    return bw_hash64(offset);
}

/* What arrived is the file. */
static int target_check(struct bw_buffer *target, uint64_t size_bytes, struct bw_err *err)
{
    uint64_t *words = malloc(WRITE_BYTES);
    int rc = words ? 0 : bw_fail(err, -ENOMEM, "bench", "%d bytes", WRITE_BYTES);
    for (uint64_t at = 0; at < size_bytes && !rc; at += WRITE_BYTES) {
        uint64_t part = size_bytes - at < WRITE_BYTES ? size_bytes - at : WRITE_BYTES;
        rc = bw_buffer_read(target, at, words, part, err);
        for (uint64_t i = 0; i < part && !rc; i += sizeof *words) {
            uint64_t expected = word_at(at + i), bytes = part - i < sizeof *words ? part - i : sizeof *words;
            if (memcmp(&words[i / sizeof *words], &expected, bytes))
                rc = bw_fail(err, -EIO, "bench", "wrong data at offset %llu of %s",
                             (unsigned long long)(at + i), bw_device_info(bw_buffer_device(target))->name);
        }
    }
    free(words);
    return rc;
}

static struct bw_disk_manner manner_of(const struct bench *bench)
{
    return bw_disk_manner(((struct bw_disk_device *)bench->disk)->disk);
}

/* Share of what was read since `before` that went past the page cache. */
static double direct_share(const struct bench *bench, struct bw_disk_manner before)
{
    struct bw_disk_manner now = manner_of(bench);
    uint64_t direct = now.direct_bytes - before.direct_bytes, cached = now.cached_bytes - before.cached_bytes;
    return direct + cached ? (double)direct / (double)(direct + cached) : 0;
}

static void row_report(const struct bench *bench, const char *device, uint64_t size_bytes,
                       const struct step steps[STEPS], double direct)
{
    double slower = steps[0].gb_per_s < steps[1].gb_per_s ? steps[0].gb_per_s : steps[1].gb_per_s;
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "device", device);
    cJSON_AddNumberToObject(row, "size_bytes", (double)size_bytes);
    cJSON_AddNumberToObject(row, "file_gb_per_s", steps[0].gb_per_s);
    cJSON_AddNumberToObject(row, "copy_gb_per_s", steps[1].gb_per_s);
    cJSON_AddNumberToObject(row, "both_gb_per_s", steps[2].gb_per_s);
    cJSON_AddNumberToObject(row, "share_of_slower", steps[2].gb_per_s / slower);
    cJSON_AddNumberToObject(row, "direct_share", direct);
    cJSON_AddItemToArray(bench->rows, row);
    if (bench->text)
        bw_print(bench->text, "%-26s %12llu %9.3f %9.3f %9.3f %6.2f %6.2f\n", device,
                 (unsigned long long)size_bytes, steps[0].gb_per_s, steps[1].gb_per_s, steps[2].gb_per_s,
                 steps[2].gb_per_s / slower, direct);
}

static int steps_make(const struct bench *bench, struct step steps[STEPS], struct bw_buffer *ends[STEPS][2],
                      uint64_t size_bytes, struct bw_err *err)
{
    int rc = 0;
    for (int i = 0; i < STEPS && !rc; i++) {
        steps[i].rates = calloc(bench->repeats, sizeof *steps[i].rates);
        rc = steps[i].rates ? bw_bench_copy_link(bench->ctx, bw_buffer_device(ends[i][0]), ends[i][0],
                                                 ends[i][1], size_bytes, &steps[i].linked, err)
                            : bw_fail(err, -ENOMEM, "bench", "%u rates", bench->repeats);
    }
    return rc;
}

/* File to memory, memory to device, file to device. */
static int size_run(const struct bench *bench, struct bw_device *device, uint64_t size_bytes,
                    struct bw_err *err)
{
    struct bw_buffer *file = NULL, *memory = NULL, *target = NULL;
    struct step steps[STEPS] = {0};
    struct bw_disk_manner before = manner_of(bench);
    int rc = bw_buffer_file(bench->disk, 0, size_bytes, &file, err);
    if (!rc)
        rc = bw_buffer_create(bench->disk, size_bytes, BW_BUFFER_HOST, &memory, err);
    if (!rc)
        rc = bw_buffer_create(device, size_bytes, BW_BUFFER_DEVICE, &target, err);
    struct bw_buffer *ends[STEPS][2] = {{memory, file}, {target, memory}, {target, file}};
    if (!rc)
        rc = steps_make(bench, steps, ends, size_bytes, err);
    if (!rc)
        rc = steps_measure(bench, steps, size_bytes, err);
    if (!rc)
        rc = target_check(target, size_bytes, err);
    if (!rc)
        row_report(bench, bw_device_info(device)->name, size_bytes, steps, direct_share(bench, before));
    for (int i = 0; i < STEPS; i++) {
        bw_linked_graph_destroy(steps[i].linked);
        free(steps[i].rates);
    }
    bw_buffer_destroy(target);
    bw_buffer_destroy(memory);
    bw_buffer_destroy(file);
    return rc;
}

/* Room for the file before anything is written: what does not fit is refused at once, and fills no disk. */
static int file_reserve(const struct bench *bench)
{
    if (bench->sizes.most > INT64_MAX)
        return -EFBIG;
    int code = fallocate(bench->fd, 0, 0, (off_t)bench->sizes.most) ? errno : 0;
    return code == EOPNOTSUPP || code == EINTR ? 0 : -code; /* then it grows as it is written */
}

static int file_fill(const struct bench *bench, struct bw_err *err)
{
    uint64_t *words = malloc(WRITE_BYTES);
    int rc = words ? file_reserve(bench) : -ENOMEM;
    for (uint64_t at = 0; at < bench->sizes.most && !rc;) {
        uint64_t part = bench->sizes.most - at < WRITE_BYTES ? bench->sizes.most - at : WRITE_BYTES;
        for (uint64_t i = 0; i < WRITE_BYTES / sizeof *words; i++)
            words[i] = word_at(at + i * sizeof *words);
        for (uint64_t done = 0; done < part && !rc;) {
            ssize_t wrote = write(bench->fd, (char *)words + done, part - done);
            rc = wrote < 0 && errno != EINTR ? -errno : 0;
            done += wrote > 0 ? (uint64_t)wrote : 0;
        }
        at += part;
    }
    free(words);
    if (!rc && fsync(bench->fd)) /* pages that are not on the disk yet are not dropped */
        rc = -errno;
    return rc ? bw_fail(err, rc, "bench", "a file of %llu bytes in $TMPDIR",
                        (unsigned long long)bench->sizes.most)
              : 0;
}

/* Without a name, so that nothing is left whatever ends the program. */
static int file_make(struct bench *bench, struct bw_err *err)
{
    char path[4096], name[64];
    const char *directory = getenv("TMPDIR");
    int length = snprintf(path, sizeof path, "%s/bellwire-disk-XXXXXX",
                          directory && *directory ? directory : P_tmpdir);
    bench->fd = length < (int)sizeof path ? mkostemp(path, O_CLOEXEC) : -1;
    if (bench->fd < 0)
        return bw_fail(err, length < (int)sizeof path ? -errno : -ENAMETOOLONG, "bench", "%s", path);
    unlink(path);
    int rc = file_fill(bench, err);
    snprintf(name, sizeof name, "disk:/proc/self/fd/%d", bench->fd);
    return rc ? rc : bw_device_open(bench->ctx, name, &bench->disk, err);
}

static void bench_close(struct bench *bench)
{
    bw_bench_devices_close(&bench->devices);
    bw_device_close(bench->disk);
    if (bench->fd >= 0)
        close(bench->fd);
}

static int bench_walk(const struct bench *bench, struct bw_err *err)
{
    uint64_t size_bytes = 0;
    int rc = 0;
    if (bench->text) {
        bw_print(bench->text, "# read by %s\n", manner_of(bench).ring);
        bw_print(bench->text, "%-26s %12s %9s %9s %9s %6s %6s\n", "device", "bytes", "file", "copy",
                 "both GB/s", "share", "direct");
    }
    while (!rc && bw_bench_size_next(&bench->sizes, &size_bytes))
        for (uint32_t i = 0; i < bench->devices.count && !rc; i++)
            rc = size_run(bench, bench->devices.at[i], size_bytes, err);
    return rc;
}

int bw_bench_disk(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err)
{
    cJSON *root = cJSON_CreateObject();
    struct bench bench = {.ctx = options->ctx,
                          .fd = -1,
                          .repeats = options->repeats ? options->repeats : REPEATS_DEFAULT,
                          .sizes = bw_bench_sizes(options, BYTES_MIN_DEFAULT, BYTES_MAX_DEFAULT),
                          .rows = cJSON_AddArrayToObject(root, "results"),
                          .text = options->text};
    int rc =
        bw_bench_devices_open(options, NULL, &bench.devices, err); /* by default the first GPU, or a mock */
    if (!rc)
        rc = file_make(&bench, err);
    if (!rc)
        rc = bench_walk(&bench, err);
    if (!rc)
        cJSON_AddStringToObject(root, "ring", manner_of(&bench).ring);
    bench_close(&bench);
    if (rc) {
        cJSON_Delete(root);
        return rc;
    }
    *document = root;
    return 0;
}
