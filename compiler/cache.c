/* Content-addressed files: see cache.h. */
#include "compiler/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    PATH_BYTES_MAX = 4096,
    ENTRY_BYTES_MAX = 64 << 20, /* no kernel is near this; larger is damage */
};

static const uint64_t MAGIC = 0x316b2d7762ull; /* "bw-k1" in memory */

struct entry_header {
    uint64_t magic;
    struct bw_key key; /* a renamed file is no entry */
    uint64_t size_bytes, checksum;
};

struct bw_cache {
    char *dir; /* NULL: none */
};

int bw_cache_create(const char *dir, struct bw_cache **out, struct bw_err *err)
{
    struct bw_cache *cache = calloc(1, sizeof *cache);
    bool wanted = dir && *dir;
    if (cache && wanted)
        cache->dir = strdup(dir);
    if (!cache || (wanted && !cache->dir)) {
        free(cache);
        return bw_fail(err, -ENOMEM, "cache", "new cache");
    }
    *out = cache;
    return 0;
}

void bw_cache_destroy(struct bw_cache *cache)
{
    if (!cache)
        return;
    free(cache->dir);
    free(cache);
}

/* 256 directories keep each short. */
static bool entry_path(const struct bw_cache *cache, struct bw_key key, char *path, size_t path_bytes)
{
    int length = snprintf(path, path_bytes, "%s/kernels/%02x/%016" PRIx64 "%016" PRIx64, cache->dir,
                          (unsigned)(key.words[0] >> 56), key.words[0], key.words[1]);
    return length > 0 && (size_t)length < path_bytes;
}

static bool read_whole(int fd, void *data, uint64_t size_bytes)
{
    for (uint64_t done = 0; done < size_bytes;) {
        ssize_t got = read(fd, (char *)data + done, size_bytes - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (uint64_t)got;
    }
    return true;
}

static bool write_whole(int fd, const void *data, uint64_t size_bytes)
{
    for (uint64_t done = 0; done < size_bytes;) {
        ssize_t put = write(fd, (const char *)data + done, size_bytes - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (uint64_t)put;
    }
    return true;
}

static bool header_fits(const struct entry_header *header, struct bw_key key)
{
    return header->magic == MAGIC && !memcmp(&header->key, &key, sizeof key) &&
           header->size_bytes <= ENTRY_BYTES_MAX;
}

bool bw_cache_get(const struct bw_cache *cache, struct bw_key key, void **data, uint64_t *size_bytes)
{
    char path[PATH_BYTES_MAX];
    struct entry_header header;
    if (!cache->dir || !entry_path(cache, key, path, sizeof path))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait for its writer */
    if (fd < 0)
        return false;
    bool found = read_whole(fd, &header, sizeof header) && header_fits(&header, key);
    *data = found ? malloc(header.size_bytes + 1) : NULL;
    found = *data && read_whole(fd, *data, header.size_bytes) &&
            XXH3_64bits(*data, header.size_bytes) == header.checksum;
    close(fd);
    if (!found) {
        free(*data);
        *data = NULL;
        return false;
    }
    *size_bytes = header.size_bytes;
    return true;
}

static void make_directories(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700); /* what lies in it is executed: nobody else writes it. One that is there, or cannot
                              be made, shows when the file is opened */
        *slash = '/';
    }
}

struct entry {
    struct entry_header header;
    const void *data;
};

static bool entry_write(int fd, const struct entry *entry)
{
    return write_whole(fd, &entry->header, sizeof entry->header) &&
           write_whole(fd, entry->data, entry->header.size_bytes);
}

/* Gives the file without a name that one. What stands there is another writer's, or damaged. */
static bool entry_name(const struct bw_cache *cache, int fd, struct bw_key key, const char *path)
{
    char file[32];
    void *other = NULL;
    uint64_t other_bytes;
    snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
    if (!linkat(AT_FDCWD, file, AT_FDCWD, path, AT_SYMLINK_FOLLOW))
        return true;
    if (errno != EEXIST)
        return false;
    bool good = bw_cache_get(cache, key, &other, &other_bytes);
    free(other);
    if (good)
        return true;
    unlink(path);
    return !linkat(AT_FDCWD, file, AT_FDCWD, path, AT_SYMLINK_FOLLOW) || errno == EEXIST;
}

/* Through a file that has no name until it is whole: a process that is killed leaves nothing. False where the
 * file system or a missing /proc does not allow that. */
static bool put_unnamed(const struct bw_cache *cache, const struct entry *entry, const char *path)
{
    char directory[PATH_BYTES_MAX];
    snprintf(directory, sizeof directory, "%.*s", (int)(strrchr(path, '/') - path), path);
    int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool done = entry_write(fd, entry) && entry_name(cache, fd, entry->header.key, path);
    close(fd);
    return done;
}

/* Renaming is atomic, too: a reader sees the old entry, the new one or none. */
static void put_renamed(const struct entry *entry, const char *path)
{
    char temporary[PATH_BYTES_MAX + 32];
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return;
    bool written = entry_write(fd, entry);
    written = close(fd) == 0 && written;
    if (!written || rename(temporary, path))
        unlink(temporary);
}

void bw_cache_put(const struct bw_cache *cache, struct bw_key key, const void *data, uint64_t size_bytes)
{
    char path[PATH_BYTES_MAX];
    struct entry entry = {{MAGIC, key, size_bytes, XXH3_64bits(data, size_bytes)}, data};
    if (!cache->dir || size_bytes > ENTRY_BYTES_MAX || !entry_path(cache, key, path, sizeof path))
        return;
    if (access(path, F_OK))
        make_directories(path);
    if (!put_unnamed(cache, &entry, path))
        put_renamed(&entry, path);
}
