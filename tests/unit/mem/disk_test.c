/* Goal: reads of a file are whole or fail with the offset, whatever the kernel does to their pieces: short,
 * interrupted, refused past the page cache, in any order, cut off, broken. A machine made up here does all of
 * it; the same requests on the real one are compared with the file. */
#include "mem/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/rng.h"
#include "tests/check.h"
#include "tests/seed.h"

enum {
    FILE_BYTES = 3 * 1024 * 1024 + 1234,
    BUFFER_BYTES = 4 << 20,
    PROBE_FD = 10, /* opened without waiting */
    DIRECT_FD = 11,
    CACHED_FD = 12,
    ENTRIES = 64
};

/* A machine with one file, whose ring serves reads late, in any order, and with these habits. */
struct machine {
    struct bw_sys sys;
    struct bw_ring ring;
    struct bw_rng rng;
    uint8_t *file;
    uint64_t size_bytes; /* now */
    bool no_proc;        /* nothing is opened again */
    bool no_direct;      /* the file system has no O_DIRECT */
    bool no_ring, ring_breaks;
    uint32_t short_percent, interrupted_percent;
    bool always_interrupted;
    int direct_error; /* what every direct read gives */
    int error;        /* what reads of that byte give */
    uint64_t error_offset;
    uint64_t cut_after; /* reads until the file is cut, 0: never */
    uint64_t cut_bytes; /* to */
    uint64_t reads, direct_reads, memories;
    uint32_t open_files, rings;
    uint64_t sleeps;
    struct bw_ring_read waiting[ENTRIES];
    uint32_t waiting_count;
};

static struct machine *machine_of(struct bw_sys *sys)
{
    return (struct machine *)sys;
}

static struct machine *machine_of_ring(struct bw_ring *ring)
{
    return (struct machine *)((char *)ring - offsetof(struct machine, ring));
}

static int machine_open(struct bw_sys *sys, const char *path, int flags)
{
    struct machine *machine = machine_of(sys);
    bool direct = flags & O_DIRECT, probe = flags & O_NONBLOCK;
    if ((direct && machine->no_direct) || (!probe && machine->no_proc))
        return -EINVAL;
    if (strcmp(path, probe ? "file" : "/proc/self/fd/10") != 0)
        return -ENOENT;
    machine->open_files++;
    return direct ? DIRECT_FD : probe ? PROBE_FD : CACHED_FD;
}

static int machine_close(struct bw_sys *sys, int fd)
{
    machine_of(sys)->open_files--;
    return 0;
}

static int64_t machine_size(struct bw_sys *sys, int fd)
{
    return (int64_t)machine_of(sys)->size_bytes;
}

static void machine_sleep(struct bw_sys *sys, uint64_t duration_ns)
{
    machine_of(sys)->sleeps++;
}

static int ring_start(struct bw_ring *ring, const struct bw_ring_read *reads, uint32_t count)
{
    struct machine *machine = machine_of_ring(ring);
    uint32_t room = ENTRIES - machine->waiting_count, taken = (uint32_t)bw_rng_below(&machine->rng, 4) + 1;
    taken = taken < count ? taken : count;
    taken = taken < room ? taken : room;
    memcpy(machine->waiting + machine->waiting_count, reads, taken * sizeof *reads);
    machine->waiting_count += taken;
    return (int)taken;
}

static int32_t read_serve(struct machine *machine, const struct bw_ring_read *read)
{
    uint64_t size = read->size_bytes;
    machine->reads++;
    if (read->fd == PROBE_FD && !machine->no_proc)
        return -EBADF; /* such a descriptor does not wait for the disk */
    if (machine->cut_after && machine->reads == machine->cut_after)
        machine->size_bytes = machine->cut_bytes;
    if (read->fd == DIRECT_FD) {
        machine->direct_reads++;
        if (machine->direct_error)
            return machine->direct_error;
        if ((read->offset | size | (uintptr_t)read->data) % 512)
            return -EINVAL;
    }
    if (machine->always_interrupted || bw_rng_below(&machine->rng, 100) < machine->interrupted_percent)
        return bw_rng_below(&machine->rng, 2) ? -EINTR : -EAGAIN;
    if (bw_rng_below(&machine->rng, 100) < machine->short_percent)
        size = 1 + bw_rng_below(&machine->rng, size);
    if (machine->error && read->offset + size > machine->error_offset) {
        if (read->offset >= machine->error_offset || read->fd == DIRECT_FD)
            return machine->error;
        size = machine->error_offset - read->offset;
    }
    uint64_t left = read->offset < machine->size_bytes ? machine->size_bytes - read->offset : 0;
    size = size < left ? size : left;
    memcpy(read->data, machine->file + read->offset, size);
    return (int32_t)size;
}

static int ring_finish(struct bw_ring *ring, struct bw_ring_done *done, uint32_t capacity,
                       uint64_t timeout_ns)
{
    struct machine *machine = machine_of_ring(ring);
    uint32_t wanted = (uint32_t)bw_rng_below(&machine->rng, machine->waiting_count + 1), count = 0;
    if (machine->ring_breaks)
        return -EBADR;
    for (; count < wanted && count < capacity; count++) {
        uint32_t pick = (uint32_t)bw_rng_below(&machine->rng, machine->waiting_count);
        struct bw_ring_read read = machine->waiting[pick];
        machine->waiting[pick] = machine->waiting[--machine->waiting_count];
        done[count] = (struct bw_ring_done){read.tag, read_serve(machine, &read)};
    }
    return (int)count;
}

static int ring_memory_add(struct bw_ring *ring, void *data, uint64_t size_bytes)
{
    machine_of_ring(ring)->memories++;
    return -ENOMEM;
}

static void ring_memory_remove(struct bw_ring *ring, void *data)
{
    machine_of_ring(ring)->memories--;
}

static void ring_close(struct bw_ring *ring)
{
    machine_of_ring(ring)->rings--;
}

static int machine_ring_open(struct bw_sys *sys, uint32_t entries, struct bw_ring **ring)
{
    static const struct bw_ring_ops ops = {ring_start, ring_finish, ring_memory_add, ring_memory_remove,
                                           ring_close};
    struct machine *machine = machine_of(sys);
    BW_EQ(entries, ENTRIES);
    if (machine->no_ring)
        return -ENOMEM;
    machine->ring = (struct bw_ring){&ops, "made up"};
    machine->rings++;
    *ring = &machine->ring;
    return 0;
}

static const struct bw_sys_ops machine_ops = {
    .open = machine_open,
    .close = machine_close,
    .size = machine_size,
    .sleep_ns = machine_sleep,
    .ring_open = machine_ring_open,
};

struct fixture {
    struct machine machine;
    struct bw_disk *disk;
    struct bw_err err;
    uint8_t *buffer; /* aligned to pages */
};

static void fixture_make(struct fixture *f, const char *what)
{
    memset(f, 0, sizeof *f);
    f->machine.sys.ops = &machine_ops;
    f->machine.rng = bw_test_rng(what);
    f->machine.file = malloc(FILE_BYTES);
    f->machine.size_bytes = FILE_BYTES;
    for (size_t i = 0; i < FILE_BYTES; i++)
        f->machine.file[i] = (uint8_t)bw_hash64(i);
    f->buffer = aligned_alloc(BW_DISK_ALIGNMENT, BUFFER_BYTES);
}

static void fixture_open(struct fixture *f, const char *what)
{
    fixture_make(f, what);
    BW_OK(bw_disk_open(&f->machine.sys, "file", &f->disk, &f->err), &f->err);
}

static void fixture_close(struct fixture *f)
{
    bw_disk_close(f->disk);
    BW_EQ(f->machine.open_files, 0);
    BW_EQ(f->machine.rings, 0);
    free(f->machine.file);
    free(f->buffer);
}

/* One read, alone. */
static int read_now(struct fixture *f, uint64_t offset, void *data, uint64_t size_bytes)
{
    uint32_t request;
    int rc = bw_disk_start(f->disk, offset, data, size_bytes, &request);
    for (int turn = 0; !rc && !bw_disk_finished(f->disk, request, &rc, &f->err); turn++) {
        bw_disk_run(f->disk, 1000);
        if (turn == 1000000) {
            BW_TRUE(!"the read ends");
            return -ETIME;
        }
    }
    BW_TRUE(bw_disk_idle(f->disk));
    return rc;
}

struct range {
    uint64_t offset, size_bytes, at;
};

/* Offsets, sizes and addresses of all alignments; half of them in step, so that direct reads happen. */
static struct range range_pick(struct bw_rng *rng, uint64_t size_max)
{
    struct range range = {.size_bytes = 1 + bw_rng_below(rng, bw_rng_below(rng, 2) ? size_max : 10000)};
    range.offset = bw_rng_below(rng, FILE_BYTES - range.size_bytes + 1);
    if (bw_rng_below(rng, 4) == 0)
        range.offset = bw_align_down(range.offset, BW_DISK_ALIGNMENT);
    range.at = bw_rng_below(rng, 2) ? range.offset % BW_DISK_ALIGNMENT : bw_rng_below(rng, BW_DISK_ALIGNMENT);
    return range;
}

/* Many requests under way, each into a part of the buffer of its own, with guards around. */
static void requests_compare(struct fixture *f, uint32_t rounds)
{
    enum { SLOTS = BW_DISK_REQUESTS_MAX, SLOT_BYTES = BUFFER_BYTES / SLOTS };
    struct range ranges[SLOTS];
    uint32_t requests[SLOTS], request;
    bool used[SLOTS] = {0};
    uint32_t begun = 0, ended = 0;
    while (ended < rounds) {
        for (uint32_t i = 0; i < SLOTS && begun < rounds; i++) {
            if (used[i] || bw_rng_below(&f->machine.rng, 2))
                continue;
            uint8_t *slot = f->buffer + i * SLOT_BYTES;
            ranges[i] = range_pick(&f->machine.rng, SLOT_BYTES - 3 * BW_DISK_ALIGNMENT);
            ranges[i].at += BW_DISK_ALIGNMENT;
            memset(slot, 0xa5, SLOT_BYTES);
            BW_EQ(bw_disk_start(f->disk, ranges[i].offset, slot + ranges[i].at, ranges[i].size_bytes,
                                &requests[i]),
                  0);
            used[i] = true;
            begun++;
        }
        bool all = begun - ended == SLOTS;
        if (all)
            BW_EQ(bw_disk_start(f->disk, 0, f->buffer, 1, &request), -EAGAIN);
        bw_disk_run(f->disk, 1000);
        for (uint32_t i = 0; i < SLOTS; i++) {
            int rc = 1;
            if (!used[i] || !bw_disk_finished(f->disk, requests[i], &rc, &f->err))
                continue;
            const uint8_t *slot = f->buffer + i * SLOT_BYTES, *data = slot + ranges[i].at;
            BW_OK(rc, &f->err);
            BW_BYTES(data, f->machine.file + ranges[i].offset, ranges[i].size_bytes);
            BW_EQ(data[-1], 0xa5);
            BW_EQ(data[ranges[i].size_bytes], 0xa5);
            used[i] = false;
            ended++;
        }
    }
    BW_TRUE(bw_disk_idle(f->disk));
}

static void whatever_happens_to_pieces_requests_are_whole(void)
{
    static const uint32_t habits[][2] = {{0, 0}, {50, 0}, {0, 50}, {60, 40}, {100, 30}};
    for (size_t i = 0; i < BW_COUNT_OF(habits); i++) {
        struct fixture f;
        fixture_open(&f, "pieces");
        f.machine.short_percent = habits[i][0];
        f.machine.interrupted_percent = habits[i][1];
        uint32_t rounds = habits[i][0] == 100 ? 60 : 300;
        requests_compare(&f, rounds);
        BW_TRUE(f.machine.direct_reads > rounds / 4); /* past the page cache where it can be */
        struct bw_disk_manner manner = bw_disk_manner(f.disk);
        BW_STR(manner.ring, "made up");
        BW_TRUE(manner.direct_bytes && manner.cached_bytes);
        fixture_close(&f);
    }
}

static void aligned_ranges_go_past_the_page_cache(void)
{
    struct fixture f;
    fixture_open(&f, "aligned");
    /* In step, though both ends lie inside blocks: only those two are cached reads. */
    BW_OK(read_now(&f, 4096 - 100, f.buffer + 4096 - 100, 2000000), &f.err);
    BW_BYTES(f.buffer + 4096 - 100, f.machine.file + 4096 - 100, 2000000);
    struct bw_disk_manner manner = bw_disk_manner(f.disk);
    BW_EQ(manner.direct_bytes, bw_align_down(2000000 - 100, 4096));
    BW_EQ(manner.direct_bytes + manner.cached_bytes, 2000000);
    /* Out of step. */
    BW_OK(read_now(&f, 4096, f.buffer + 8, 1000000), &f.err);
    BW_EQ(bw_disk_manner(f.disk).direct_bytes, manner.direct_bytes);
    fixture_close(&f);
}

/* -EFAULT: memory with no pages to lend. -EINVAL: blocks larger than we think. */
static void what_is_refused_past_the_page_cache_is_read_through_it(void)
{
    static const int errors[] = {EFAULT, EINVAL, EOPNOTSUPP};
    for (size_t i = 0; i < BW_COUNT_OF(errors); i++) {
        struct fixture f;
        fixture_open(&f, "refused");
        f.machine.direct_error = -errors[i];
        f.machine.short_percent = 30;
        requests_compare(&f, 100);
        BW_EQ(bw_disk_manner(f.disk).direct_bytes, 0);
        BW_TRUE(f.machine.direct_reads > 0);
        /* Each request finds out once, not once for each piece. */
        f.machine.direct_reads = 0;
        BW_OK(read_now(&f, 0, f.buffer, 3 << 20), &f.err);
        BW_TRUE(f.machine.direct_reads <= 3);
        fixture_close(&f);
    }
    for (int no_proc = 0; no_proc < 2; no_proc++) {
        struct fixture f;
        fixture_make(&f, "refused");
        f.machine.no_direct = !no_proc;
        f.machine.no_proc = no_proc;
        BW_OK(bw_disk_open(&f.machine.sys, "file", &f.disk, &f.err), &f.err);
        requests_compare(&f, 100);
        BW_EQ(f.machine.direct_reads, 0);
        fixture_close(&f);
    }
}

static void errors_carry_the_offset(void)
{
    struct fixture f;
    fixture_open(&f, "errors");
    for (int i = 0; i < 200; i++) {
        struct range range = range_pick(&f.machine.rng, BUFFER_BYTES - 2 * BW_DISK_ALIGNMENT - 1500000);
        f.machine.error = -EIO;
        f.machine.error_offset = range.offset + bw_rng_below(&f.machine.rng, range.size_bytes);
        f.machine.direct_error = -EINVAL; /* cached reads fail at the byte itself */
        f.machine.short_percent = i % 2 ? 40 : 0;
        char expected[64];
        snprintf(expected, sizeof expected, "file: reading at offset %llu",
                 (unsigned long long)f.machine.error_offset);
        BW_EQ(read_now(&f, range.offset, f.buffer + range.at, range.size_bytes), -EIO);
        BW_STR(f.err.what, expected);
        /* The next one is served. */
        f.machine.error = 0;
        BW_OK(read_now(&f, range.offset, f.buffer + range.at, range.size_bytes), &f.err);
        BW_BYTES(f.buffer + range.at, f.machine.file + range.offset, range.size_bytes);
    }
    fixture_close(&f);
}

static void a_file_that_shrinks_is_an_error(void)
{
    for (uint64_t cut = 0; cut < 40; cut++) {
        struct fixture f;
        fixture_open(&f, "shrinks");
        f.machine.cut_after = 1 + cut;
        f.machine.cut_bytes = cut * 70000;
        f.machine.short_percent = 50;
        int rc = read_now(&f, 0, f.buffer, FILE_BYTES);
        if (f.machine.size_bytes == FILE_BYTES) { /* it had been read before */
            BW_OK(rc, &f.err);
        } else if (rc) {
            unsigned long long offset = 0;
            BW_EQ(rc, -ENODATA);
            BW_EQ(sscanf(f.err.what, "file: the file ends at or before offset %llu", &offset), 1);
            BW_TRUE(offset >= f.machine.cut_bytes && offset < FILE_BYTES);
            BW_TRUE(strstr(f.err.expected, "3146962 bytes") != NULL);
        } else {
            BW_BYTES(f.buffer, f.machine.file, FILE_BYTES);
        }
        fixture_close(&f);
    }
}

static void interruptions_without_end_are_an_error(void)
{
    struct fixture f;
    fixture_open(&f, "interrupted");
    f.machine.always_interrupted = true;
    int rc = read_now(&f, 5000, f.buffer, 100);
    BW_TRUE(rc == -EINTR || rc == -EAGAIN);
    BW_STR(f.err.what, "file: reading at offset 5000");
    BW_TRUE(f.machine.sleeps > 100); /* not at full speed */
    f.machine.always_interrupted = false;
    BW_OK(read_now(&f, 5000, f.buffer, 100), &f.err);
    fixture_close(&f);
}

static void a_ring_that_breaks_fails_what_is_under_way(void)
{
    struct fixture f;
    fixture_open(&f, "breaks");
    f.machine.ring_breaks = true;
    BW_EQ(read_now(&f, 100, f.buffer, 3000000), -EBADR);
    BW_STR(f.err.what, "file: reading at offset 100");
    fixture_close(&f);
}

static void opening_fails_by_name(void)
{
    struct fixture f;
    fixture_make(&f, "opening");
    BW_EQ(bw_disk_open(&f.machine.sys, "absent", &f.disk, &f.err), -ENOENT);
    BW_STR(f.err.what, "absent");
    f.machine.size_bytes = (uint64_t)-EISDIR;
    BW_EQ(bw_disk_open(&f.machine.sys, "file", &f.disk, &f.err), -EISDIR);
    BW_STR(f.err.expected, "a file or block device");
    f.machine.size_bytes = 1;
    f.machine.no_ring = true;
    BW_EQ(bw_disk_open(&f.machine.sys, "file", &f.disk, &f.err), -ENOMEM);
    BW_EQ(f.machine.open_files, 0);
    f.disk = NULL;
    fixture_close(&f);
}

/* The real machine: io_uring or threads, with and without known memory, in $TMPDIR and so with whatever file
 * system is there. */
static void the_real_machine_gives_the_files_bytes(void)
{
    struct fixture f;
    fixture_make(&f, "real");
    struct bw_sys *sys;
    char path[512];
    const char *directory = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/bw_disk_test_XXXXXX", directory && *directory ? directory : "/tmp");
    int fd = mkstemp(path);
    BW_EQ(write(fd, f.machine.file, FILE_BYTES), FILE_BYTES);
    BW_EQ(bw_sys_host_create(&sys), 0);
    BW_OK(bw_disk_open(sys, path, &f.disk, &f.err), &f.err);
    BW_EQ(bw_disk_size(f.disk), FILE_BYTES);
    BW_STR(bw_disk_path(f.disk), path);
    requests_compare(&f, 300);
    bw_disk_memory_add(f.disk, f.buffer, BUFFER_BYTES);
    requests_compare(&f, 300);
    /* Cut: what is gone is an error, what is left is not. */
    BW_EQ(ftruncate(fd, 100000), 0);
    BW_OK(read_now(&f, 0, f.buffer, 100000), &f.err);
    BW_EQ(read_now(&f, 90000, f.buffer, 20000), -ENODATA);
    BW_STR(f.err.what + strlen(path), ": the file ends at or before offset 100000");
    bw_disk_memory_remove(f.disk, f.buffer);
    unlink(path);
    close(fd);
    bw_disk_close(f.disk);
    f.disk = NULL;
    bw_sys_destroy(sys);
    fixture_close(&f);
}

BW_TEST_MAIN("mem.disk",
             {"whatever happens to pieces, requests are whole",
              whatever_happens_to_pieces_requests_are_whole},
             {"aligned ranges go past the page cache", aligned_ranges_go_past_the_page_cache},
             {"what is refused past the page cache is read through it",
              what_is_refused_past_the_page_cache_is_read_through_it},
             {"errors carry the offset", errors_carry_the_offset},
             {"a file that shrinks is an error", a_file_that_shrinks_is_an_error},
             {"interruptions without end are an error", interruptions_without_end_are_an_error},
             {"a ring that breaks fails what is under way", a_ring_that_breaks_fails_what_is_under_way},
             {"opening fails by name", opening_fails_by_name},
             {"the real machine gives the file's bytes", the_real_machine_gives_the_files_bytes})
