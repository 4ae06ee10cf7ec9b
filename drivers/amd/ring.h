/* A ring that a GPU engine reads and this process writes: command processor rings count in dwords, SDMA rings
 * in bytes.
 *
 * One writer. Overrun is impossible: a write that does not fit before the engine's read pointer is refused.
 */
#ifndef BW_DRIVERS_AMD_RING_H
#define BW_DRIVERS_AMD_RING_H

#include <stdint.h>

#include <bellwire/region.h>

struct bw_amd_ring {
    struct bw_region words;             /* the ring itself */
    uint32_t size_words;                /* power of two */
    struct bw_region pointers;          /* host memory that the engine polls and reports to */
    uint64_t read_offset, write_offset; /* of the 8-byte pointers in there */
    struct bw_region doorbell;
    uint32_t pointer_scale; /* pointer units per word: 1, or 4 for bytes */
    uint64_t put;           /* words written since ever */
};

/* A word that an engine may be writing: one atomic access, and what it says is done can be read after it. */
uint64_t bw_amd_load64(const struct bw_region *region, uint64_t offset);

/* Takes over where the write pointer in memory stands, so that a ring that was used before goes on. */
void bw_amd_ring_start(struct bw_amd_ring *ring);
/* Words that can be written now. The last word of the ring stays free: equal pointers mean empty. */
uint32_t bw_amd_ring_space(const struct bw_amd_ring *ring);
/* Position of the next word, for packets that must end at a boundary. */
uint32_t bw_amd_ring_position(const struct bw_amd_ring *ring);
/* Appends words; they wrap at the end. count must not exceed bw_amd_ring_space. Not visible to the engine
 * yet. */
void bw_amd_ring_write(struct bw_amd_ring *ring, const uint32_t *words, uint32_t count);
/* Makes what was written visible and rings the doorbell. */
void bw_amd_ring_announce(struct bw_amd_ring *ring);
/* The engine's read pointer, raw. */
uint64_t bw_amd_ring_read_pointer(const struct bw_amd_ring *ring);

#endif
