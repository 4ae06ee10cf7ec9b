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

#include "base/bits.h"
#include "compiler/io.h"

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

void bw_cache_put(const struct bw_cache *cache, struct bw_key key, const void *data, uint64_t size_bytes)
{
    char path[PATH_BYTES_MAX];
    struct entry_header header = {MAGIC, key, size_bytes, XXH3_64bits(data, size_bytes)};
    const struct bw_file_piece pieces[] = {{&header, sizeof header}, {data, size_bytes}};
    struct stat status;
    if (!cache->dir || size_bytes > ENTRY_BYTES_MAX || !entry_path(cache, key, path, sizeof path))
        return;
    bool exists = lstat(path, &status) == 0;
    if (!exists)
        make_directories(path);
    else if (!S_ISREG(status.st_mode) && unlink(path)) /* a FIFO, a link: nothing of ours */
        return;
    bw_file_put(path, 0600, pieces, BW_COUNT_OF(pieces)); /* what cannot be kept is compiled again */
}
