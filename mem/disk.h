/* A file or block device that is read at any offset, by several reads at once, past the page cache where file
 * system and alignment allow it. What interrupts a read or ends it early is dealt with here: a request is
 * done when all of its bytes are there, or fails with the offset of the byte that is not to be had.
 *
 * One thread at a time, except bw_disk_memory_add and _remove. */
#ifndef BW_MEM_DISK_H
#define BW_MEM_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/err.h>
#include <bellwire/sys.h>

enum {
    /* Reads whose offset, size and address are multiples of this go past the page cache: the block size of
     * all but the oddest disks. Others work, and cost the page cache's copy. */
    BW_DISK_ALIGNMENT = 4096,
    BW_DISK_REQUESTS_MAX = 16, /* under way at once: as many copies as a queue runs ahead, and some */
};

struct bw_disk;

/* path is copied. -errno of opening it: -EISDIR and -ESPIPE for what is no file. Ended by bw_disk_close. */
int bw_disk_open(struct bw_sys *sys, const char *path, struct bw_disk **disk, struct bw_err *err);
/* Nothing may be under way. NULL is fine. */
void bw_disk_close(struct bw_disk *disk);
uint64_t bw_disk_size(const struct bw_disk *disk); /* when it was opened */
const char *bw_disk_path(const struct bw_disk *disk);

/* How it is read, for those who measure. */
struct bw_disk_manner {
    const char *ring;      /* struct bw_ring's kind */
    uint64_t direct_bytes; /* read past the page cache so far */
    uint64_t cached_bytes; /* and through it */
};
struct bw_disk_manner bw_disk_manner(const struct bw_disk *disk);

/* Memory that will be read into: see struct bw_ring_ops. Any thread. */
void bw_disk_memory_add(struct bw_disk *disk, void *data, uint64_t size_bytes);
void bw_disk_memory_remove(struct bw_disk *disk, void *data);

/* Begins to read size_bytes > 0 bytes from offset on; the range has to lie inside the file as it was opened.
 * *request names it until bw_disk_finished was told. -EAGAIN: as many as may be are under way. */
int bw_disk_start(struct bw_disk *disk, uint64_t offset, void *data, uint64_t size_bytes, uint32_t *request);
/* Goes on with what is under way; waits at most so long for something to end. Returns the bytes that have
 * arrived since the last call. */
uint64_t bw_disk_run(struct bw_disk *disk, uint64_t timeout_ns);
bool bw_disk_idle(const struct bw_disk *disk); /* nothing is under way */
/* Whether the request is done; then *rc is 0, or -errno with *err saying path and offset, and its number is
 * free again. -ENODATA: the file ends there: it has shrunk. */
bool bw_disk_finished(struct bw_disk *disk, uint32_t request, int *rc, struct bw_err *err);

#endif
