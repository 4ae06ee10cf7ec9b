/* Goal: machine code of every elementwise operation on every dtype gives the evaluator's bits, specials and
 * ties included, on the host and on the mock GPU; EXP2, LOG2 and SIN within 2 ulp. */
#include <bellwire/err.h>

#include <math.h>

#include "compiler/plan.h"
#include "tests/unit/compiler/random_graph.h"

enum { COUNT = 320, OUTPUTS_MAX = 64 };

static const enum bw_dtype dtypes[] = {BW_BOOL, BW_I8,  BW_U8,  BW_I16,  BW_U16, BW_I32, BW_U32,
                                       BW_I64,  BW_U64, BW_F16, BW_BF16, BW_F32, BW_F64};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static void fill_float(struct bw_rng *rng, enum bw_dtype dtype, unsigned char *data)
{
    static const double specials[] = {0,
                                      -0.0,
                                      1,
                                      -1,
                                      0.5,
                                      1.5,
                                      2.5,
                                      -0.5,
                                      -1.5,
                                      INFINITY,
                                      -INFINITY,
                                      NAN,
                                      0x1p-24,
                                      0x1p-149,
                                      0x1p-126,
                                      65504,
                                      65520,
                                      127.5,
                                      128,
                                      -128.5,
                                      255.5,
                                      256,
                                      32767.5,
                                      2147483647.0,
                                      2147483648.0,
                                      -2147483649.0,
                                      4294967295.0,
                                      0x1p63,
                                      -0x1p63,
                                      0x1p64,
                                      1e30,
                                      -1e30,
                                      3.5,
                                      7.25,
                                      1.0000001,
                                      0.99999994,
                                      0x1p-133,
                                      0x1p-1040};
    enum { SPECIALS = sizeof specials / sizeof specials[0] };
    uint32_t bytes = bw_dtype_bytes(dtype);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t bits = bw_rng_next(rng);
        union bw_scalar value = {.d = i % 4 == 1 ? specials[bw_rng_below(rng, SPECIALS)]
                                                 : (bw_rng_unit(rng) - 0.5) * 40};
        if (i % 4 == 0) /* any bits at all */
            memcpy(data + i * bytes, &bits, bytes);
        else
            bw_scalar_store(dtype, data + i * bytes, bw_scalar_fit(dtype, value));
    }
}

static void fill(struct bw_rng *rng, enum bw_dtype dtype, void *data)
{
    unsigned char *bytes = data;
    uint32_t size = bw_dtype_bytes(dtype);
    if (bw_dtype_is_float(dtype)) {
        fill_float(rng, dtype, bytes);
        return;
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        static const int64_t specials[] = {0, 1, -1, 2, 7, 63, 64, 31, 32};
        union bw_scalar value = {.i = (int64_t)bw_rng_next(rng) >> bw_rng_below(rng, 64)};
        if (i % 4 == 1)
            value.i = specials[bw_rng_below(rng, 9)];
        if (i % 16 == 2)
            value.i = bw_rng_below(rng, 2) ? bw_dtype_int_min(dtype) : bw_dtype_int_max(dtype);
        bw_scalar_store(dtype, bytes + i * size, bw_scalar_fit(dtype, value));
    }
}

struct outputs {
    struct bw_tensor_graph *g;
    bw_tensor list[OUTPUTS_MAX];
    double ulps[OUTPUTS_MAX];
    const char *names[OUTPUTS_MAX];
    uint32_t count;
};

static void output(struct outputs *o, const char *name, bw_tensor x, double ulps)
{
    if (!BW_TRUE(o->count < OUTPUTS_MAX))
        return;
    o->names[o->count] = name;
    o->ulps[o->count] = ulps;
    o->list[o->count++] = x;
}

static void outputs_of_float(struct outputs *o, bw_tensor a, bw_tensor b)
{
    struct bw_tensor_graph *g = o->g;
#define UNARY(name, ulps) output(o, #name, bw_tensor_##name(g, a), ulps);
#define BINARY(name)      output(o, #name, bw_tensor_##name(g, a, b), 0);
    UNARY(exp2, 2)
    UNARY(log2, 2)
    UNARY(sqrt, 0) UNARY(reciprocal, 0) UNARY(trunc, 0) UNARY(floor, 0) UNARY(ceil, 0) UNARY(round_even, 0)
        BINARY(div)
        /* far arguments of SIN in f64 are bounded in decompose.h */
        bw_tensor near =
            bw_tensor_max(g, bw_tensor_min(g, a, bw_tensor_scalar(g, bw_tensor_dtype(g, a), 1e4)),
                          bw_tensor_scalar(g, bw_tensor_dtype(g, a), -1e4));
    output(o, "sin", bw_tensor_sin(g, near), 2);
}

static void outputs_of_int(struct outputs *o, bw_tensor a, bw_tensor b)
{
    struct bw_tensor_graph *g = o->g;
    UNARY(not, 0)
    BINARY(floor_div)
    BINARY(floor_mod) BINARY(trunc_mod) BINARY(div) BINARY(and) BINARY(or) BINARY(xor) BINARY(shl) BINARY(shr)
}

static void outputs_of(struct outputs *o, enum bw_dtype dtype)
{
    struct bw_tensor_graph *g = o->g;
    int64_t dims[] = {COUNT};
    bw_tensor a = bw_tensor_input(g, dtype, 1, dims), b = bw_tensor_input(g, dtype, 1, dims);
    for (uint32_t i = 0; i < DTYPES; i++)
        if (dtypes[i] != dtype)
            output(o, bw_dtype_name(dtypes[i]), bw_tensor_cast(g, dtypes[i], a), 0);
    BINARY(less)
    BINARY(equal)
    BINARY(not_equal) BINARY(max) BINARY(min)
        output(o, "where", bw_tensor_where(g, bw_tensor_less(g, a, b), a, b), 0);
    if (dtype == BW_BOOL) {
        UNARY(not, 0) BINARY(and) BINARY(or) BINARY(xor) return;
    }
    UNARY(neg, 0)
    UNARY(abs, 0) BINARY(add) BINARY(sub) BINARY(mul) if (bw_dtype_is_float(dtype)) outputs_of_float(o, a, b);
    else outputs_of_int(o, a, b);
}

/* Distance in units of the last place, by the order of the bits. */
static double ulps_between(enum bw_dtype dtype, union bw_scalar a, union bw_scalar b)
{
    if ((isnan(a.d) && isnan(b.d)) || a.d == b.d)
        return 0;
    if (!isfinite(a.d) || !isfinite(b.d))
        return HUGE_VAL;
    int digits = dtype == BW_F64 ? 52 : dtype == BW_F32 ? 23 : dtype == BW_F16 ? 10 : 7;
    int lowest = dtype == BW_F64 ? -1022 : dtype == BW_F16 ? -14 : -126;
    int exponent = b.d == 0 ? lowest : ilogb(b.d);
    return fabs(a.d - b.d) / ldexp(1, (exponent < lowest ? lowest : exponent) - digits);
}

static bool same(const char *name, enum bw_dtype from, enum bw_dtype dtype, const void *observed,
                 const void *expected, double ulps)
{
    uint32_t bytes = bw_dtype_bytes(dtype);
    for (uint32_t i = 0; i < COUNT; i++) {
        union bw_scalar a = bw_scalar_load(dtype, (const char *)observed + i * bytes),
                        b = bw_scalar_load(dtype, (const char *)expected + i * bytes);
        bool real = bw_dtype_is_float(dtype);
        if (real ? ulps_between(dtype, a, b) <= ulps : a.i == b.i)
            continue;
        printf("\n      %s of %s, element %u of %s: ", name, bw_dtype_name(from), i, bw_dtype_name(dtype));
        if (real)
            printf("expected %a, observed %a\n", b.d, a.d);
        else
            printf("expected %lld, observed %lld\n", (long long)b.i, (long long)a.i);
        return false;
    }
    return true;
}

static bool check_dtype(struct bw_device *device, enum bw_dtype dtype)
{
    static uint64_t data[2][COUNT], observed[OUTPUTS_MAX][COUNT];
    struct bw_err err;
    struct bw_rng rng = {dtype};
    struct outputs o = {.count = 0};
    struct bw_plan *plan = NULL;
    void *expected[OUTPUTS_MAX] = {0}, *targets[OUTPUTS_MAX];
    const void *inputs[] = {data[0], data[1]};
    if (!BW_OK(bw_tensor_graph_create(&o.g, &err), &err))
        return false;
    outputs_of(&o, dtype);
    fill(&rng, dtype, data[0]);
    fill(&rng, dtype, data[1]);
    for (uint32_t i = 0; i < COUNT && dtype == BW_BOOL; i++)
        for (int k = 0; k < 2; k++)
            ((uint8_t *)data[k])[i] &= 1;
    for (uint32_t i = 0; i < o.count; i++)
        targets[i] = observed[i];
    bool ok = BW_OK(bw_tensor_evaluate_with(o.g, o.list, o.count, inputs, 2, expected, &err), &err) &&
              BW_OK(bw_plan_create(o.g, device, o.list, o.count, NULL, &plan, &err), &err) &&
              BW_OK(bw_plan_run(plan, inputs, targets, &err), &err);
    for (uint32_t i = 0; i < o.count && ok; i++)
        ok &= BW_TRUE(
            same(o.names[i], dtype, bw_tensor_dtype(o.g, o.list[i]), observed[i], expected[i], o.ulps[i]));
    for (uint32_t i = 0; i < o.count; i++)
        free(expected[i]);
    bw_plan_destroy(plan);
    bw_tensor_graph_destroy(o.g);
    return ok;
}

static void check_device(const char *name)
{
    struct bw_err err;
    struct bw_ctx *ctx;
    struct bw_device *device;
    struct bw_ctx_config config = {.size = sizeof config, .cache_dir = "", .wait_ns = 20000000000ull};
    if (!BW_OK(bw_ctx_create(&config, &ctx, &err), &err))
        return;
    if (BW_OK(bw_device_open(ctx, name, &device, &err), &err)) {
        for (uint32_t i = 0; i < DTYPES; i++)
            check_dtype(device, dtypes[i]);
        bw_device_close(device);
    }
    bw_ctx_destroy(ctx);
}

static void every_operation_on_the_host(void)
{
    check_device("host:0");
}

static void every_operation_on_the_mock_gpu(void)
{
    check_device("mockkfd+amd@gfx1100");
}

int main(void)
{
    static const struct bw_test tests[] = {
        {"every_operation_on_the_host", every_operation_on_the_host},
        {"every_operation_on_the_mock_gpu", every_operation_on_the_mock_gpu}};
    return BW_HAVE_LLVM ? bw_test_run("codegen", tests, sizeof tests / sizeof tests[0]) : BW_TEST_SKIPPED;
}
