/* Chunked arena: many small allocations, one free. Not thread safe. */
#ifndef BW_BASE_ARENA_H
#define BW_BASE_ARENA_H

#include <stddef.h>

struct bw_arena_chunk;

struct bw_arena {
    struct bw_arena_chunk *chunks; /* newest first */
    size_t used_bytes;             /* handed out in total */
};

/* Zeroed memory aligned to 16 bytes, valid until bw_arena_free; NULL when out of memory. A size of 0 gives a
 * unique pointer. */
void *bw_arena_alloc(struct bw_arena *arena, size_t size_bytes);

/* A copy of size_bytes at data, or NULL. */
void *bw_arena_copy(struct bw_arena *arena, const void *data, size_t size_bytes);

/* A copy of the string, or NULL. */
char *bw_arena_string(struct bw_arena *arena, const char *text);

/* Frees everything; the arena is empty and usable again. A zeroed struct is a valid empty arena. */
void bw_arena_free(struct bw_arena *arena);

#endif
