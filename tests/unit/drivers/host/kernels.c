/* Kernels for the tests of the host device and of hcq: compiled to an object in several code models
 * (tests/extra.cmake), loaded by the driver's own loader. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <bellwire/program.h>

#include "drivers/host/host.h"

#define RECORD(function, count)                          \
    static const struct {                                \
        struct bw_host_kernel_record kernel;             \
        struct bw_host_argument_record arguments[count]; \
    } function##_record __attribute__((section(BW_HOST_KERNEL_SECTION), used, aligned(4)))

#define HEADER(function, count, block_bytes, hint)                                                   \
    {                                                                                                \
        BW_HOST_KERNEL_MAGIC,                                                                        \
            sizeof(struct bw_host_kernel_record) + (count) * sizeof(struct bw_host_argument_record), \
            #function, count, block_bytes, hint, 0                                                   \
    }

enum { GROUP_WORDS = 64 };

void axpy(const void *block, uint32_t x, uint32_t y, uint32_t z);
void mix(const void *block, uint32_t x, uint32_t y, uint32_t z);
void count_groups(const void *block, uint32_t x, uint32_t y, uint32_t z);
void use_math(const void *block, uint32_t x, uint32_t y, uint32_t z);
void use_data(const void *block, uint32_t x, uint32_t y, uint32_t z);
void wait_for_flag(const void *block, uint32_t x, uint32_t y, uint32_t z);
void mark_and_wait(const void *block, uint32_t x, uint32_t y, uint32_t z);
void nothing(const void *block, uint32_t x, uint32_t y, uint32_t z);

/* out[i] = a[i] * k + b[i], GROUP_WORDS elements per group of x. */
struct axpy_block {
    const float *a, *b;
    float *out;
    float k;
    uint32_t count;
};
RECORD(axpy, 5) = {HEADER(axpy, 5, 32, 0),
                   {{"a", BW_ARGUMENT_BUFFER, 0, 8, 0},
                    {"b", BW_ARGUMENT_BUFFER, 8, 8, 0},
                    {"out", BW_ARGUMENT_BUFFER, 16, 8, 0},
                    {"k", BW_ARGUMENT_VALUE, 24, 4, 0},
                    {"count", BW_ARGUMENT_VALUE, 28, 4, 0}}};

void axpy(const void *block, uint32_t x, uint32_t y, uint32_t z)
{
    const struct axpy_block *arguments = block;
    (void)y, (void)z;
    for (uint32_t i = x * GROUP_WORDS; i < (x + 1) * GROUP_WORDS && i < arguments->count; i++)
        arguments->out[i] = arguments->a[i] * arguments->k + arguments->b[i];
}

/* One group: target[i] = target[i] * 31 + source[min(i, source_count - 1)] + salt. Order between two launches
 * shows in the result. */
struct mix_block {
    uint8_t *target;
    const uint8_t *source;
    uint32_t target_count, source_count, salt;
};
RECORD(mix, 5) = {HEADER(mix, 5, 32, 1),
                  {{"target", BW_ARGUMENT_BUFFER, 0, 8, 0},
                   {"source", BW_ARGUMENT_BUFFER, 8, 8, 0},
                   {"target_count", BW_ARGUMENT_VALUE, 16, 4, 0},
                   {"source_count", BW_ARGUMENT_VALUE, 20, 4, 0},
                   {"salt", BW_ARGUMENT_VALUE, 24, 4, 0}}};

void mix(const void *block, uint32_t x, uint32_t y, uint32_t z)
{
    const struct mix_block *arguments = block;
    (void)x, (void)y, (void)z;
    for (uint32_t i = 0; i < arguments->target_count; i++) {
        uint32_t k = i < arguments->source_count ? i : arguments->source_count - 1;
        arguments->target[i] = (uint8_t)(arguments->target[i] * 31u + arguments->source[k] + arguments->salt);
    }
}

/* counts[x + y * 7 + z * 35] += 1 for a grid of 7 x 5 x n. */
RECORD(count_groups, 1) = {HEADER(count_groups, 1, 8, 1), {{"counts", BW_ARGUMENT_BUFFER, 0, 8, 0}}};

void count_groups(const void *block, uint32_t x, uint32_t y, uint32_t z)
{
    uint32_t *counts = *(uint32_t *const *)block;
    __atomic_fetch_add(&counts[x + y * 7 + z * 35], 1, __ATOMIC_RELAXED);
}

/* Far calls by name, one of them through a pointer in read-only data. */
struct math_block {
    const float *in;
    float *out;
    uint32_t count;
};
RECORD(use_math, 3) = {HEADER(use_math, 3, 24, 0),
                       {{"in", BW_ARGUMENT_BUFFER, 0, 8, 0},
                        {"out", BW_ARGUMENT_BUFFER, 8, 8, 0},
                        {"count", BW_ARGUMENT_VALUE, 16, 4, 0}}};

typedef float unary(float);
static unary *const functions[] = {sinf, expf, tanhf};

void use_math(const void *block, uint32_t x, uint32_t y, uint32_t z)
{
    const struct math_block *arguments = block;
    float copy[16];
    (void)x, (void)y, (void)z;
    for (uint32_t i = 0; i + 16 <= arguments->count; i += 16) {
        memcpy(copy, arguments->in + i, arguments->count < 16 ? arguments->count : sizeof copy);
        for (uint32_t k = 0; k < 16; k++)
            arguments->out[i + k] = functions[(i + k) % 3](copy[k]) + powf(copy[k], 2.0f);
    }
}

/* Constant tables, initialised data and .bss. */
RECORD(use_data, 1) = {HEADER(use_data, 1, 8, 0), {{"out", BW_ARGUMENT_BUFFER, 0, 8, 0}}};

static const uint32_t primes[] = {2, 3, 5, 7, 11, 13, 17, 19};
uint32_t launches_counted = 100;
uint32_t zeroed[2000];

static __attribute__((noinline)) uint32_t prime_at(uint32_t i)
{
    return primes[i % 8];
}

void use_data(const void *block, uint32_t x, uint32_t y, uint32_t z)
{
    uint32_t *out = *(uint32_t *const *)block;
    (void)x, (void)y, (void)z;
    launches_counted++;
    zeroed[1999] += prime_at(launches_counted);
    out[0] = launches_counted;
    out[1] = zeroed[1999];
}

/* A kernel that ends only when somebody stores to flag[0]. */
RECORD(wait_for_flag, 1) = {HEADER(wait_for_flag, 1, 8, 1), {{"flag", BW_ARGUMENT_BUFFER, 0, 8, 0}}};

void wait_for_flag(const void *block, uint32_t x, uint32_t y, uint32_t z)
{
    const uint32_t *flag = *(const uint32_t *const *)block;
    (void)x, (void)y, (void)z;
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        __builtin_ia32_pause();
}

RECORD(mark_and_wait, 2) = {HEADER(mark_and_wait, 2, 16, 1),
                            {{"mark", BW_ARGUMENT_BUFFER, 0, 8, 0}, {"flag", BW_ARGUMENT_BUFFER, 8, 8, 0}}};

/* Says that it runs, then as the last one. */
void mark_and_wait(const void *block, uint32_t x, uint32_t y, uint32_t z)
{
    uint32_t *const *words = block;
    (void)x, (void)y, (void)z;
    __atomic_store_n(words[0], 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(words[1], __ATOMIC_ACQUIRE))
        __builtin_ia32_pause();
}

/* No arguments. */
static const struct bw_host_kernel_record nothing_record
    __attribute__((section(BW_HOST_KERNEL_SECTION), used, aligned(4))) = HEADER(nothing, 0, 0, 0);

void nothing(const void *block, uint32_t x, uint32_t y, uint32_t z)
{
    (void)block, (void)x, (void)y, (void)z;
}
