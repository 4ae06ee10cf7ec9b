/* Counts this program's allocations per thread, by standing in front of glibc's allocator, which exports
 * itself under second names. A program may do that; the library never would. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "bench/bench.h"

#if defined(BW_SANITIZED)

uint64_t bw_bench_allocations(void)
{
    return UINT64_MAX;
}

#else

static _Thread_local uint64_t allocation_count;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    allocation_count++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocation_count++;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    allocation_count++;
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    allocation_count++;
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    allocation_count++;
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}

uint64_t bw_bench_allocations(void)
{
    return allocation_count;
}

#endif
