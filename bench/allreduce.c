/* All-reduce: every rank gets the sum (or what -o says) of what all ranks send, by a collective of the
 * library. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/map.h"
#include "bench/collective.h"
#include "tools/print.h"

/* ---- data: small whole numbers, so that every type holds them and their sum ---- */

enum {
    VALUES = 4,
    FACTORS_MAX = 8 /* ranks that send a factor of 2: 2^8 fits into every type but bytes, which wrap */
};

static uint32_t value_of(const struct bw_bench_group *group, uint32_t rank, uint64_t index)
{
    uint32_t value = (uint32_t)(bw_hash64((uint64_t)rank << 48 | index) % VALUES);
    return group->reduction == BW_REDUCE_PROD ? 1 + (value & (rank < FACTORS_MAX)) : value;
}

static double reduced(const struct bw_bench_group *group, uint64_t index)
{
    double result = value_of(group, 0, index);
    for (uint32_t rank = 1; rank < group->rank_count; rank++) {
        double value = value_of(group, rank, index);
        result = group->reduction == BW_REDUCE_PROD  ? result * value
                 : group->reduction == BW_REDUCE_MIN ? fmin(result, value)
                 : group->reduction == BW_REDUCE_MAX ? fmax(result, value)
                                                     : result + value;
    }
    return group->reduction == BW_REDUCE_AVG ? result / group->rank_count : result;
}

static void element_put(char *at, enum bw_dtype dtype, double value)
{
    uint16_t half = dtype == BW_F16 ? bw_f16_from_f64(value) : bw_bf16_from_f64(value);
    float single = (float)value;
    int64_t whole = (int64_t)value; /* its low bytes */
    const void *from = dtype == BW_F64                       ? (const void *)&value
                       : dtype == BW_F32                     ? (const void *)&single
                       : dtype == BW_F16 || dtype == BW_BF16 ? (const void *)&half
                                                             : (const void *)&whole;
    memcpy(at, from, bw_dtype_bytes(dtype));
}

static double float_get(const char *at, enum bw_dtype dtype)
{
    uint16_t half;
    float single;
    double value;
    memcpy(dtype == BW_F64   ? (void *)&value
           : dtype == BW_F32 ? (void *)&single
                             : (void *)&half,
           at, bw_dtype_bytes(dtype));
    return dtype == BW_F64   ? value
           : dtype == BW_F32 ? single
           : dtype == BW_F16 ? bw_f16_to_f32(half)
                             : bw_bf16_to_f32(half);
}

/* Sums of these values are exact in every type; averages are rounded, once for each rank at most (the bound
 * of bellwire/collective.h). */
static bool element_is_wrong(const struct bw_bench_group *group, const char *observed, double expected)
{
    char bytes[8];
    enum bw_dtype travels = group->transport == BW_VOID ? group->dtype : group->transport;
    double e = travels == BW_F16    ? 0x1p-11
               : travels == BW_BF16 ? 0x1p-8
               : travels == BW_F32  ? 0x1p-24
                                    : 0x1p-53;
    if (bw_dtype_is_float(group->dtype) && group->reduction == BW_REDUCE_AVG)
        return !(fabs(float_get(observed, group->dtype) - expected) <=
                 (group->rank_count + 1) * e * expected);
    element_put(bytes, group->dtype, expected);
    return memcmp(observed, bytes, group->element_bytes) != 0;
}

static void allreduce_fill(const struct bw_bench_group *group, uint32_t rank, uint64_t size_bytes,
                           char *memory)
{
    for (uint64_t i = 0; i < size_bytes / group->element_bytes; i++)
        element_put(memory + i * group->element_bytes, group->dtype, value_of(group, rank, i));
}

static uint64_t allreduce_wrong(const struct bw_bench_group *group, uint32_t rank, uint64_t size_bytes,
                                const char *memory)
{
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < size_bytes / group->element_bytes; i++)
        wrong += element_is_wrong(group, memory + i * group->element_bytes, reduced(group, i));
    return wrong;
}

/* ---- columns ---- */

static uint64_t allreduce_count(const struct bw_bench_group *group, uint64_t *size_bytes)
{
    uint64_t count = *size_bytes / group->element_bytes;
    *size_bytes = count * group->element_bytes;
    return count;
}

static double allreduce_bus_factor(uint32_t rank_count)
{
    return 2.0 * (rank_count - 1) / rank_count;
}

/* No schedule comes below each part once to whoever reduces it, and the result once to everyone. */
static uint64_t allreduce_traffic(uint32_t rank_count, uint32_t from, uint32_t to, uint64_t size_bytes)
{
    return from == to ? 0 : 2 * (size_bytes / rank_count);
}

int bw_bench_allreduce(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err)
{
    static const struct bw_bench_collective allreduce = {.kind = BW_ALL_REDUCE,
                                                         .root = -1,
                                                         .reduces = true,
                                                         .count = allreduce_count,
                                                         .bus_factor = allreduce_bus_factor,
                                                         .traffic = allreduce_traffic,
                                                         .fill = allreduce_fill,
                                                         .wrong = allreduce_wrong};
    return bw_bench_collective_run(options, &allreduce, document, err);
}
