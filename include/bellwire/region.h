/* Mapped device memory: the only way the library touches BARs, doorbells and device-visible host memory. */
#ifndef BW_REGION_H
#define BW_REGION_H

#include <assert.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the CPU sees the region. Decides which barrier the submit path needs. */
enum bw_memory_type {
    BW_MEMORY_CACHED,         /* ordinary memory, coherent with the device */
    BW_MEMORY_WRITE_COMBINED, /* writes may linger in a write-combining buffer until bw_region_flush */
    BW_MEMORY_UNCACHED,       /* registers, doorbells: every access is one transaction, in order */
};

/* Access hooks of a region that has no plain memory behind it (registers and doorbells of a mock).
 * width_bytes is 4 or 8, offset is aligned to it and inside the region. Called from any thread. */
struct bw_region_ops {
    uint64_t (*read)(void *user, uint64_t offset, uint32_t width_bytes);
    void (*write)(void *user, uint64_t offset, uint32_t width_bytes, uint64_t value);
};

/* A mapping. Ownership: made by bw_sys map, ended by bw_sys unmap; copies are views and must not outlive it.
 */
struct bw_region {
    volatile void *base; /* NULL when ops is set */
    uint64_t size_bytes;
    enum bw_memory_type memory_type;
    const struct bw_region_ops *ops; /* NULL: plain memory at base */
    void *user;
};

#define BW_REGION_ACCESSOR(bits)                                                                          \
    static inline uint##bits##_t bw_rd##bits(const struct bw_region *region, uint64_t offset)             \
    {                                                                                                     \
        assert(offset % (bits / 8) == 0 && region->size_bytes >= bits / 8 &&                              \
               offset <= region->size_bytes - bits / 8);                                                  \
        if (region->ops)                                                                                  \
            return (uint##bits##_t)region->ops->read(region->user, offset, bits / 8);                     \
        return *(volatile uint##bits##_t *)((volatile char *)region->base + offset);                      \
    }                                                                                                     \
    static inline void bw_wr##bits(const struct bw_region *region, uint64_t offset, uint##bits##_t value) \
    {                                                                                                     \
        assert(offset % (bits / 8) == 0 && region->size_bytes >= bits / 8 &&                              \
               offset <= region->size_bytes - bits / 8);                                                  \
        if (region->ops)                                                                                  \
            region->ops->write(region->user, offset, bits / 8, value);                                    \
        else                                                                                              \
            *(volatile uint##bits##_t *)((volatile char *)region->base + offset) = value;                 \
    }

/* One access of exactly that width, bounds and alignment asserted; no barrier implied. */
BW_REGION_ACCESSOR(32)
BW_REGION_ACCESSOR(64)

/* Makes all earlier stores of this CPU (plain, cached and write-combined) visible before any later store,
 * doorbells included. */
static inline void bw_store_fence(void)
{
#if defined(__x86_64__)
    __asm__ volatile("sfence" ::: "memory");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#ifdef __cplusplus
}
#endif
#endif
