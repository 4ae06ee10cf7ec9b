/* Goal: the kernel cache gives back what was stored, whole or not at all: truncated, damaged and renamed
 * files count as not there, and writers at once do no harm. */
#include <bellwire/err.h>

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "compiler/cache.h"
#include "tests/check.h"

enum { PAYLOAD_BYTES = 3000 };

static char directory[] = "/tmp/bellwire-cache-XXXXXX";

static void payload_fill(struct bw_key key, unsigned char *payload)
{
    struct bw_rng rng = {key.words[0]};
    for (int i = 0; i < PAYLOAD_BYTES; i++)
        payload[i] = (unsigned char)bw_rng_next(&rng);
}

static void entry_path(struct bw_key key, char *path, size_t path_bytes)
{
    snprintf(path, path_bytes, "%s/a/kernels/%02x/%016llx%016llx", directory, (unsigned)(key.words[0] >> 56),
             (unsigned long long)key.words[0], (unsigned long long)key.words[1]);
}

static bool holds(const struct bw_cache *cache, struct bw_key key)
{
    unsigned char expected[PAYLOAD_BYTES];
    void *data = NULL;
    uint64_t size = 0;
    payload_fill(key, expected);
    bool found = bw_cache_get(cache, key, &data, &size);
    if (found)
        found = BW_EQ(size, PAYLOAD_BYTES) && BW_BYTES(data, expected, PAYLOAD_BYTES);
    free(data);
    return found;
}

static void put(const struct bw_cache *cache, struct bw_key key)
{
    unsigned char payload[PAYLOAD_BYTES];
    payload_fill(key, payload);
    bw_cache_put(cache, key, payload, sizeof payload);
}

static struct bw_cache *cache_in_new_directory(void)
{
    char path[64];
    struct bw_err err;
    struct bw_cache *cache = NULL;
    snprintf(path, sizeof path, "%s/a", directory);
    BW_OK(bw_cache_create(path, &cache, &err), &err);
    return cache;
}

static void damaged_files_are_not_there(void)
{
    struct bw_cache *cache = cache_in_new_directory();
    struct bw_key key = {{0x1200000000000001ull, 2}}, other = {{0x1200000000000001ull, 3}};
    char path[256], other_path[256];
    BW_TRUE(!holds(cache, key));
    put(cache, key);
    BW_TRUE(holds(cache, key));
    entry_path(key, path, sizeof path);
    entry_path(other, other_path, sizeof other_path);
    struct stat info;
    if (!BW_EQ(stat(path, &info), 0))
        return;
    for (off_t size = 0; size < info.st_size; size += 37) { /* any truncation */
        BW_EQ(truncate(path, size), 0);
        BW_TRUE(!holds(cache, key));
        put(cache, key);
    }
    for (off_t at = 0; at < info.st_size; at += 61) { /* any byte changed */
        FILE *file = fopen(path, "r+b");
        fseek(file, at, SEEK_SET);
        int byte = fgetc(file);
        fseek(file, at, SEEK_SET);
        fputc(byte ^ 0x40, file);
        fclose(file);
        BW_TRUE(!holds(cache, key));
        put(cache, key);
    }
    BW_TRUE(holds(cache, key));
    BW_EQ(rename(path, other_path), 0); /* another key's file */
    BW_TRUE(!holds(cache, other));
    bw_cache_destroy(cache);
}

static void *write_and_read(void *user)
{
    struct bw_cache *cache = user;
    for (int i = 0; i < 200; i++) {
        struct bw_key key = {{0x3400000000000000ull + (uint64_t)(i % 5), 9}};
        put(cache, key);
        if (!holds(cache, key))
            return NULL;
    }
    return user;
}

static void writers_at_once_do_no_harm(void)
{
    struct bw_cache *cache = cache_in_new_directory();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        BW_EQ(pthread_create(&threads[i], NULL, write_and_read, cache), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        BW_TRUE(result == cache);
    }
    bw_cache_destroy(cache);
}

static void no_directory_is_no_error(void)
{
    struct bw_err err;
    struct bw_cache *cache;
    struct bw_key key = {{1, 1}};
    static const char *const nowhere[] = {"", NULL, "/proc/no-such-place"};
    for (int i = 0; i < 3; i++) {
        if (!BW_OK(bw_cache_create(nowhere[i], &cache, &err), &err))
            return;
        put(cache, key);
        BW_TRUE(!holds(cache, key));
        bw_cache_destroy(cache);
    }
}

static void clean_up(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -r '%s'", directory);
    BW_EQ(system(command), 0);
}

int main(void)
{
    static const struct bw_test tests[] = {{"damaged_files_are_not_there", damaged_files_are_not_there},
                                           {"writers_at_once_do_no_harm", writers_at_once_do_no_harm},
                                           {"no_directory_is_no_error", no_directory_is_no_error},
                                           {"clean_up", clean_up}};
    return mkdtemp(directory) ? bw_test_run("cache", tests, sizeof tests / sizeof tests[0]) : 1;
}
