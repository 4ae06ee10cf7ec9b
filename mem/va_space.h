/* Address space of one device or machine: ranges that are reserved in this process (no access, no memory
 * behind), so that GPU address == CPU address can hold and nothing else lands there. Reserved in pieces of at
 * most 64 GiB, since one reservation of everything fails under sanitizers and address-space limits; more is
 * reserved when a piece is full. Not thread safe: the owner locks. */
#ifndef BW_MEM_VA_SPACE_H
#define BW_MEM_VA_SPACE_H

#include <stdint.h>

#include <bellwire/sys.h>

#include "base/vec.h"

struct bw_tlsf;

enum {
    /* The unit of mapping on the CPU and of the GPUs' page tables. */
    BW_VA_PAGE_BYTES = 4096,
};
/* Of one reservation, unless a single allocation is larger. */
#define BW_VA_PIECE_BYTES_MAX (64ull << 30)
/* When the system refuses a piece it is halved down to this before giving up (or to the allocation's own
 * size). */
#define BW_VA_PIECE_BYTES_MIN (64ull << 20)

struct bw_va_space {
    struct bw_sys *sys;
    uint64_t lowest, highest; /* addresses that the device can reach, both inclusive */
    struct bw_tlsf *tlsf;
    BW_VEC(struct bw_region) pieces;
};

/* Reserves nothing yet. 0 or -ENOMEM. Ended by bw_va_space_fini, also after a failure. */
int bw_va_space_init(struct bw_va_space *space, struct bw_sys *sys, uint64_t lowest, uint64_t highest);

/* Unmaps everything reserved, whatever was mapped there. Returns the bytes still allocated (0 unless leaked).
 */
uint64_t bw_va_space_fini(struct bw_va_space *space);

/* In a forked child, where the reservations are not (they are not inherited): forgets them, so that fini
 * unmaps nothing. */
void bw_va_space_forget(struct bw_va_space *space);

/* A range to map into with bw_map_request.fixed_address. alignment 0: a page's. -EINVAL: size 0 or absurd;
 * -ENOMEM: the system gives no more address space; -ERANGE: what it gives is out of the device's reach. */
int bw_va_space_alloc(struct bw_va_space *space, uint64_t size_bytes, uint64_t alignment, uint64_t *address);

/* The range must hold a bare reservation again: map it with reserve and fixed_address first. Returns its
 * size. */
uint64_t bw_va_space_free(struct bw_va_space *space, uint64_t address);

#endif
