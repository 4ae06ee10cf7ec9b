/* What every elementwise operation means, on one element: the interpreter's arithmetic. Exact: floats of
 * every width are held in a double and rounded to their own type after each operation (a double has more than
 * twice the bits of f32, so one rounding more never shows in + - * / and square root). */
#ifndef BW_COMPILER_SCALAR_H
#define BW_COMPILER_SCALAR_H

#include "compiler/ir.h"

/* Floats in d; ints and bool in i, sign- or zero-extended to 64 bits as the dtype says. */
union bw_scalar {
    int64_t i;
    double d;
};

union bw_scalar bw_scalar_load(enum bw_dtype dtype, const void *at);
void bw_scalar_store(enum bw_dtype dtype, void *at, union bw_scalar value);
/* Rounds or wraps into the dtype. */
union bw_scalar bw_scalar_fit(enum bw_dtype dtype, union bw_scalar value);
union bw_scalar bw_scalar_cast(enum bw_dtype to, enum bw_dtype from, union bw_scalar value);
/* dtype: of the operands (SHL, SHR: of the first). MULTIPLY_ADD of f32 and f64 is fused. */
union bw_scalar bw_scalar_unary(enum bw_op op, enum bw_dtype dtype, union bw_scalar a);
union bw_scalar bw_scalar_binary(enum bw_op op, enum bw_dtype dtype, union bw_scalar a, union bw_scalar b);
union bw_scalar bw_scalar_multiply_add(enum bw_dtype dtype, union bw_scalar a, union bw_scalar b,
                                       union bw_scalar c);
union bw_scalar bw_scalar_bitcast(enum bw_dtype to, enum bw_dtype from, union bw_scalar value);

#endif
