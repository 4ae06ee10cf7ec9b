/* Chunked arena: see arena.h. */
#include "base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGN_BYTES = 16,
    CHUNK_BYTES = 64 * 1024, /* big enough that malloc is rare, small enough for many arenas */
};

struct bw_arena_chunk {
    struct bw_arena_chunk *next;
    size_t size_bytes, used_bytes;
    _Alignas(16) unsigned char data[];
};

static struct bw_arena_chunk *chunk_add(struct bw_arena *arena, size_t size_bytes)
{
    size_t chunk_bytes = size_bytes > CHUNK_BYTES ? size_bytes : CHUNK_BYTES;
    struct bw_arena_chunk *chunk = calloc(1, sizeof *chunk + chunk_bytes);
    if (!chunk)
        return NULL;
    chunk->size_bytes = chunk_bytes;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

void *bw_arena_alloc(struct bw_arena *arena, size_t size_bytes)
{
    if (size_bytes > SIZE_MAX / 2)
        return NULL;
    size_t rounded = (size_bytes + (size_bytes == 0) + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
    struct bw_arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->size_bytes - chunk->used_bytes < rounded)
        chunk = chunk_add(arena, rounded);
    if (!chunk)
        return NULL;
    void *memory = chunk->data + chunk->used_bytes;
    chunk->used_bytes += rounded;
    arena->used_bytes += rounded;
    assert(chunk->used_bytes <= chunk->size_bytes);
    assert(((uintptr_t)memory & (ALIGN_BYTES - 1)) == 0);
    return memory;
}

void *bw_arena_copy(struct bw_arena *arena, const void *data, size_t size_bytes)
{
    void *copy = bw_arena_alloc(arena, size_bytes);
    if (copy && size_bytes)
        memcpy(copy, data, size_bytes);
    return copy;
}

char *bw_arena_string(struct bw_arena *arena, const char *text)
{
    return bw_arena_copy(arena, text, strlen(text) + 1);
}

void bw_arena_free(struct bw_arena *arena)
{
    while (arena->chunks) {
        struct bw_arena_chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
    arena->used_bytes = 0;
}
