/* Element types. */
#ifndef BW_DTYPE_H
#define BW_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bw_dtype {
    BW_VOID,
    BW_BOOL, /* one byte, 0 or 1 */
    BW_I8,
    BW_U8,
    BW_I16,
    BW_U16,
    BW_I32,
    BW_U32,
    BW_I64,
    BW_U64,
    BW_F16,
    BW_BF16,
    BW_F32,
    BW_F64,
    BW_DTYPE_COUNT, /* of the types that tensors are computed in */
    /* Storage types: of arrays that models take and give; a model casts them before it computes. One element
     * is one byte: a small integer as i8 or u8, a small float as its bits, the low ones first. */
    BW_I2 = BW_DTYPE_COUNT,
    BW_U2,
    BW_I4,
    BW_U4,
    BW_F4E2M1,
    BW_F8E4M3FN,   /* no infinity */
    BW_F8E4M3FNUZ, /* nor -0: its bits are the only NaN */
    BW_F8E5M2,
    BW_F8E5M2FNUZ,
    BW_F8E8M0, /* powers of two, no sign, no 0 */
    BW_DTYPE_ALL_COUNT
};

uint32_t bw_dtype_bytes(enum bw_dtype dtype);   /* of an element in memory; 0 for BW_VOID */
const char *bw_dtype_name(enum bw_dtype dtype); /* "f32" */
bool bw_dtype_is_storage(enum bw_dtype dtype);
/* What the bytes of a storage type are as a tensor: BW_I8 or BW_U8. Other types: themselves. */
enum bw_dtype bw_dtype_carrier(enum bw_dtype dtype);
bool bw_dtype_storage_fits(enum bw_dtype dtype, uint8_t byte);    /* false: more bits than an element has */
double bw_dtype_storage_value(enum bw_dtype dtype, uint8_t byte); /* of a storage type's element: exact */
bool bw_dtype_is_float(enum bw_dtype dtype);
bool bw_dtype_is_int(enum bw_dtype dtype);     /* signed or unsigned, not bool */
bool bw_dtype_is_signed(enum bw_dtype dtype);  /* signed int or float */
int64_t bw_dtype_int_min(enum bw_dtype dtype); /* of ints and bool; u64's maximum saturates to INT64_MAX */
int64_t bw_dtype_int_max(enum bw_dtype dtype);
/* A number as an int: towards zero, what lies outside is the nearest (u64's bits as int64_t), NaN is 0. C
 * leaves both undefined, so whatever comes from data, attributes or measures goes through here. */
int64_t bw_dtype_int_from(enum bw_dtype dtype, double value);

/* Exact conversions, round to nearest even; NaN stays NaN (quiet, payload's top bits kept). */
uint16_t bw_f16_from_f32(float value);
uint16_t bw_f16_from_f64(double value);
float bw_f16_to_f32(uint16_t bits);
uint16_t bw_bf16_from_f32(float value);
uint16_t bw_bf16_from_f64(double value);
float bw_bf16_to_f32(uint16_t bits);

#ifdef __cplusplus
}
#endif
#endif
