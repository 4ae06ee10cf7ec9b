/* Goal: EXP2, LOG2 and SIN by polynomials stay within 2 ulp of the true value over the whole range, specials
 * included. Truth is the C library in double (for f32) and long double (for f64). */
#include <bellwire/err.h>

#include <math.h>

#include "base/rng.h"
#include "compiler/decompose.h"
#include "compiler/interp.h"
#include "tests/check.h"

enum { COUNT = 4096 };

static bw_node kernel_of(struct bw_ir *ir, enum bw_op op, enum bw_dtype dtype)
{
    bw_node index = bw_ir_range(ir, 0, BW_RANGE_LOOP, bw_ir_const_int(ir, BW_I64, COUNT));
    bw_node x = bw_ir_load(ir, bw_ir_param(ir, dtype, 1, false), index, 0, 0);
    bw_node store = bw_ir_store(ir, bw_ir_param(ir, dtype, 0, true), index, bw_ir_unary(ir, op, x), 0);
    return bw_ir_add(ir, BW_OP_SINK, BW_VOID, 0, &store, 1);
}

static bool run(enum bw_op op, enum bw_dtype dtype, void *out, void *in, size_t size_bytes)
{
    struct bw_err err;
    struct bw_ir *ir;
    struct bw_linear linear;
    struct bw_decompose_options options = {0};
    if (!BW_OK(bw_ir_create(&ir, &err), &err))
        return false;
    bw_node sink = bw_decompose(ir, kernel_of(ir, op, dtype), &options);
    bool ok = BW_TRUE(sink != 0) && BW_OK(bw_linearize(ir, sink, &linear, &err), &err);
    if (ok) {
        struct bw_interp_buffer buffers[] = {{out, size_bytes}, {in, size_bytes}};
        ok = BW_OK(bw_interp_run(&linear, buffers, 2, &err), &err);
        bw_linear_free(&linear);
    }
    bw_ir_destroy(ir);
    return ok;
}

static long double truth(enum bw_op op, long double x)
{
    return op == BW_OP_EXP2 ? exp2l(x) : op == BW_OP_LOG2 ? log2l(x) : sinl(x);
}

static double ulps(long double observed, long double expected, int fraction_bits, int exponent_min)
{
    if ((isnan(observed) && isnan(expected)) || observed == expected)
        return 0;
    if (!isfinite(observed) || !isfinite(expected))
        return HUGE_VAL;
    int exponent = expected == 0 ? exponent_min : ilogbl(expected);
    return (double)(fabsl(observed - expected) /
                    ldexpl(1, (exponent < exponent_min ? exponent_min : exponent) - fraction_bits));
}

static float random_f32(struct bw_rng *rng, enum bw_op op, int round)
{
    uint32_t bits = (uint32_t)bw_rng_next(rng);
    float any, unit = (float)bw_rng_unit(rng);
    memcpy(&any, &bits, sizeof any);
    switch (round % 4) {
    case 0:
        return any;
    case 1:
        return op == BW_OP_LOG2 ? 0.5f + unit * 1.5f : (unit - 0.5f) * 310;
    case 2:
        return op == BW_OP_LOG2 ? 1 + (unit - 0.5f) * 1e-3f : (unit - 0.5f) * 20;
    default:
        return op == BW_OP_SIN ? (unit - 0.5f) * 0x1p33f : (unit - 0.5f) * 1e-3f;
    }
}

static void check_f32(enum bw_op op)
{
    static const float specials[] = {0,
                                     -0.0f,
                                     1,
                                     -1,
                                     INFINITY,
                                     -INFINITY,
                                     NAN,
                                     0x1p-149f,
                                     0x1p-126f,
                                     128,
                                     127.99999f,
                                     -149,
                                     -150,
                                     -126.5f,
                                     0x1.fffffep127f,
                                     3.14159274f,
                                     16367173.0f * 0x1p72f /* nearly a multiple of pi/2 */};
    static float in[COUNT], out[COUNT];
    struct bw_rng rng = {op};
    double worst = 0;
    for (int round = 0; round < 8; round++) {
        for (uint32_t i = 0; i < COUNT; i++)
            in[i] = i < sizeof specials / sizeof specials[0] ? specials[i] : random_f32(&rng, op, round);
        if (!run(op, BW_F32, out, in, sizeof in))
            return;
        for (uint32_t i = 0; i < COUNT; i++) {
            float expected = (float)truth(op, (long double)in[i]);
            double error = isinf(expected)
                               ? (out[i] == expected ? 0 : HUGE_VAL)
                               : ulps((long double)out[i], truth(op, (long double)in[i]), 23, -126);
            if (!(error <= 2)) {
                printf("      %s(%a): %a, should be %a\n", bw_op_name(op), (double)in[i], (double)out[i],
                       (double)expected);
                BW_TRUE(error <= 2);
                return;
            }
            worst = error > worst ? error : worst;
        }
    }
    printf("(%s f32: %.2f ulp) ", bw_op_name(op), worst);
}

static void check_f64(enum bw_op op)
{
    static double in[COUNT], out[COUNT];
    struct bw_rng rng = {op};
    double worst = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        double unit = bw_rng_unit(&rng);
        if (op == BW_OP_LOG2)
            in[i] = i % 2 ? exp2((unit - 0.5) * 2000) : 0.5 + 1.5 * unit;
        else
            in[i] =
                op == BW_OP_SIN ? (unit - 0.5) * (i % 2 ? 0x1p30 : 20) : (unit - 0.5) * (i % 2 ? 2040 : 4);
    }
    in[0] = INFINITY;
    in[1] = NAN;
    in[2] = -0.0;
    in[3] = -INFINITY;
    in[4] = 0x1p-1074;
    if (!run(op, BW_F64, out, in, sizeof in))
        return;
    for (uint32_t i = 0; i < COUNT; i++) {
        double error = ulps((long double)out[i], truth(op, (long double)in[i]), 52, -1022);
        if (!(error <= 2)) {
            printf("      %s(%a): %a, should be %a\n", bw_op_name(op), in[i], out[i],
                   (double)truth(op, (long double)in[i]));
            BW_TRUE(error <= 2);
            return;
        }
        worst = error > worst ? error : worst;
    }
    printf("(%s f64: %.2f ulp) ", bw_op_name(op), worst);
}

static void exp2_within_2_ulp(void)
{
    check_f32(BW_OP_EXP2);
    check_f64(BW_OP_EXP2);
}
static void log2_within_2_ulp(void)
{
    check_f32(BW_OP_LOG2);
    check_f64(BW_OP_LOG2);
}
static void sin_within_2_ulp(void)
{
    check_f32(BW_OP_SIN);
    check_f64(BW_OP_SIN);
}

BW_TEST_MAIN("decompose", {"exp2_within_2_ulp", exp2_within_2_ulp}, {"log2_within_2_ulp", log2_within_2_ulp},
             {"sin_within_2_ulp", sin_within_2_ulp})
