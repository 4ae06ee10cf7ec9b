/* Compiled kernels on disk: content-addressed files. Any number of processes may share a directory: an entry
 * appears whole or not at all, and whatever does not check (truncated, of another version, damaged) counts as
 * not there. Losing the cache costs time, nothing else, so no failure here is an error. */
#ifndef BW_COMPILER_CACHE_H
#define BW_COMPILER_CACHE_H

#include "compiler/ir.h"

struct bw_cache; /* immutable after creation: thread safe */

/* dir "" or NULL: a cache that never holds anything. Directories are made when the first entry is stored.
 * -ENOMEM. */
int bw_cache_create(const char *dir, struct bw_cache **cache, struct bw_err *err);
void bw_cache_destroy(struct bw_cache *cache);
/* True and a malloc'd copy when there. */
bool bw_cache_get(const struct bw_cache *cache, struct bw_key key, void **data, uint64_t *size_bytes);
void bw_cache_put(const struct bw_cache *cache, struct bw_key key, const void *data, uint64_t size_bytes);

#endif
