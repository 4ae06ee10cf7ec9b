/* Goal: integers of 2 and 4 bits and floats of 4 and 8 bits go in, are cast as ONNX says, bit by bit, and
 * come out, on the evaluator, the host and the mock GPU. The reference here knows the formats by their value
 * tables only: a number is the nearest in the table, a tie goes to the even bits. */
#include <bellwire/device.h>
#include <bellwire/model.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/bits.h"
#include "tests/check.h"
#include "tests/unit/compiler/onnx_writer.h"

enum { /* onnx.proto's numbers */
       FLOAT = 1,
       INT8 = 3,
       INT32 = 6,
       FLOAT16 = 10,
       DOUBLE = 11,
       COMPLEX64 = 14,
       BFLOAT16 = 16,
       E4M3FN = 17,
       E4M3FNUZ = 18,
       E5M2 = 19,
       E5M2FNUZ = 20,
       UINT4 = 21,
       INT4 = 22,
       E2M1 = 23,
       E8M0 = 24,
       UINT2 = 25,
       INT2 = 26,
};

/* ---- the reference ---- */

struct table {
    int onnx, bits; /* bits: of the magnitude */
    enum bw_dtype dtype;
    double values[256]; /* of the magnitudes, ascending; NaN and infinity are none of them */
    int count;
    uint8_t nan, infinity; /* 0: none */
    bool signed_zero;
};

/* ONNX's float8 and float4 documents: 2^(E - bias) (1 + M 2^-m), or 2^(1 - bias) M 2^-m where E is 0. */
static void fill(struct table *table, int count, int mantissa_bits, int bias)
{
    table->count = count;
    for (int i = 0; i < count; i++) {
        int exponent = i / (1 << mantissa_bits);
        double fraction = (double)(i % (1 << mantissa_bits)) / (1 << mantissa_bits);
        table->values[i] = exponent ? pow(2, exponent - bias) * (1 + fraction) : pow(2, 1 - bias) * fraction;
    }
}

static void tables_make(struct table tables[5])
{
    tables[0] = (struct table){E4M3FN, 7, BW_F8E4M3FN, .nan = 0x7f, .signed_zero = true};
    fill(&tables[0], 0x7f, 3, 7);
    tables[1] = (struct table){E4M3FNUZ, 7, BW_F8E4M3FNUZ, .nan = 0x80};
    fill(&tables[1], 0x80, 3, 8);
    tables[2] = (struct table){E5M2, 7, BW_F8E5M2, .nan = 0x7f, .infinity = 0x7c, .signed_zero = true};
    fill(&tables[2], 0x7c, 2, 15);
    tables[3] = (struct table){E5M2FNUZ, 7, BW_F8E5M2FNUZ, .nan = 0x80};
    fill(&tables[3], 0x80, 2, 16);
    tables[4] = (struct table){E2M1, 3, BW_F4E2M1, .signed_zero = true};
    fill(&tables[4], 8, 1, 1);
}

/* What a byte stands for. */
static double value_of(const struct table *table, uint8_t byte)
{
    uint8_t magnitude = byte & ((1u << table->bits) - 1);
    bool negative = byte >> table->bits & 1;
    if (!table->signed_zero && byte == table->nan)
        return NAN;
    if (magnitude < table->count)
        return negative ? -table->values[magnitude] : table->values[magnitude];
    if (table->infinity && magnitude == table->infinity)
        return negative ? -INFINITY : INFINITY;
    return NAN;
}

static uint8_t nearest(const struct table *table, double x)
{
    int best = 0;
    for (int i = 1; i < table->count; i++) {
        double near = fabs(table->values[i] - x), known = fabs(table->values[best] - x);
        if (near < known || (near == known && i % 2 == 0))
            best = i;
    }
    return (uint8_t)best;
}

/* Cast's tables, of opset 24 on or before. */
static uint8_t byte_of(const struct table *table, double x, bool saturate, bool before_24)
{
    int last = table->count - 1;
    /* [x] > FLT_MAX: beyond the middle between the last number and the one that would follow */
    double limit = table->values[last] + (table->values[last] - table->values[last - 1]) / 2;
    bool ties_out = last % 2 == 1, beyond = ties_out ? fabs(x) >= limit : fabs(x) > limit;
    uint8_t sign = signbit(x) ? (uint8_t)(1u << table->bits) : 0, magnitude;
    if (table->onnx == E2M1)
        return isnan(x) ? 7 : (uint8_t)((fabs(x) > 6 ? 7 : nearest(table, fabs(x))) | sign);
    if (isnan(x))
        return table->nan | sign;
    if (isinf(x) && before_24 && !table->signed_zero)
        return table->nan;
    if (beyond)
        magnitude = saturate ? (uint8_t)last : table->infinity ? table->infinity : table->nan;
    else
        magnitude = nearest(table, fabs(x));
    return !magnitude && !table->signed_zero ? 0 : magnitude | sign;
}

/* ---- models ---- */

static int run_file(const struct pb *file, struct bw_device *device, const struct bw_value *input,
                    struct bw_value *output, struct bw_err *err)
{
    struct bw_model *model = NULL;
    int rc = bw_model_load_bytes(file->data, file->size_bytes, &model, err);
    rc = rc ? rc : bw_model_run(model, device, input, output, err);
    bw_model_destroy(model);
    return rc;
}

/* y = Cast(x) with attributes. */
static struct pb cast_model(int from, int to, int saturate, const char *round_mode, int64_t opset)
{
    struct pb graph = {.size_bytes = 0}, attributes = {.size_bytes = 0};
    pb_attribute_int(&attributes, "to", to);
    if (!saturate)
        pb_attribute_int(&attributes, "saturate", 0);
    if (round_mode) {
        struct pb attribute = {.size_bytes = 0};
        pb_text(&attribute, 1, "round_mode");
        pb_text(&attribute, 4, round_mode);
        pb_int(&attribute, 20, 3);
        pb_message(&attributes, 5, &attribute);
    }
    pb_node(&graph, "Cast", "x", "y", &attributes);
    pb_graph_input(&graph, "x", from, "N");
    pb_graph_output(&graph, "y", to, "N");
    return pb_model(&graph, opset);
}

static struct bw_value list(enum bw_dtype dtype, int64_t count, const void *data)
{
    return (struct bw_value){
        .kind = BW_VALUE_ARRAY,
        .array = {.dtype = dtype, .rank = 1, .dims = {count}, .data = (void *)(uintptr_t)data}};
}

/* The bytes of casts of `data`, against those expected. */
static void expect_cast(const struct pb *file, struct bw_device *device, enum bw_dtype from, const void *data,
                        enum bw_dtype to, const uint8_t *expected, int64_t count)
{
    struct bw_value input = list(from, count, data), output = {0};
    struct bw_err err = {0};
    if (BW_OK(run_file(file, device, &input, &output, &err), &err) && BW_EQ(output.array.dtype, to))
        BW_BYTES(output.array.data, expected, (size_t)count * bw_dtype_bytes(to));
    bw_value_free(&output);
}

/* ---- floats ---- */

static void every_byte_is_its_value(struct bw_device *device, const struct table *table)
{
    struct pb file = cast_model(table->onnx, FLOAT, 1, NULL, 25);
    int64_t count = 1ll << (table->bits + 1);
    uint8_t bytes[256];
    struct bw_err err = {0};
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    struct bw_value input = list(table->dtype, count, bytes), output = {0};
    if (BW_OK(run_file(&file, device, &input, &output, &err), &err) && BW_EQ(output.array.dtype, BW_F32))
        for (int i = 0; i < count; i++) {
            float observed = ((const float *)output.array.data)[i],
                  expected = (float)value_of(table, bytes[i]);
            BW_TRUE(isnan(expected) ? isnan(observed) : !memcmp(&observed, &expected, sizeof expected));
            double host = bw_dtype_storage_value(table->dtype, bytes[i]);
            BW_TRUE(isnan(expected) ? isnan(host) : host == (double)expected);
        }
    bw_value_free(&output);
}

enum { SAMPLES_MAX = 3000 };

/* All numbers of the type, the middles between neighbours, what lies just beside those, and corners. */
static int samples_make(const struct table *table, double *samples, bool single)
{
    static const double corners[] = {0,    1e-30, 2e-41, 0x1p-149, 57343, 61439, 61440, 61441, 65504,   1e30,
                                     3e38, 239,   247,   248,      249,   447,   464,   465,   INFINITY};
    int count = 0;
    for (int i = 0; i + 1 < table->count; i++) {
        double middle = (table->values[i] + table->values[i + 1]) / 2;
        samples[count++] = table->values[i];
        samples[count++] = single ? (double)nextafterf((float)middle, 0) : nextafter(middle, 0);
        samples[count++] = middle;
        samples[count++] = single ? (double)nextafterf((float)middle, INFINITY) : nextafter(middle, INFINITY);
    }
    samples[count++] = table->values[table->count - 1];
    for (size_t i = 0; i < BW_COUNT_OF(corners); i++)
        samples[count++] = corners[i];
    for (int i = 0, positive = count; i < positive; i++)
        samples[count++] = -samples[i];
    samples[count++] = (double)NAN;
    return count;
}

static void every_number_is_rounded(struct bw_device *device, const struct table *table, int saturate,
                                    int64_t opset)
{
    static double samples[SAMPLES_MAX];
    static float singles[SAMPLES_MAX];
    static uint8_t expected[SAMPLES_MAX];
    int count = samples_make(table, samples, true);
    for (int i = 0; i < count; i++) {
        singles[i] = (float)samples[i];
        expected[i] = byte_of(table, (double)singles[i], saturate, opset < 24);
    }
    struct pb file = cast_model(FLOAT, table->onnx, saturate, NULL, opset);
    expect_cast(&file, device, BW_F32, singles, table->dtype, expected, count);
    /* what is rounded to f32 first goes astray */
    count = samples_make(table, samples, false);
    for (int i = 0; i < count; i++)
        expected[i] = byte_of(table, samples[i], saturate, opset < 24);
    file = cast_model(DOUBLE, table->onnx, saturate, NULL, opset);
    expect_cast(&file, device, BW_F64, samples, table->dtype, expected, count);
}

static void narrow_floats_are_rounded(const struct table *table)
{
    static uint16_t halves[1 << 16], brains[1 << 16];
    static uint8_t half_bytes[1 << 16], brain_bytes[1 << 16];
    int count = 0;
    for (int i = 0; i < 1 << 16; i++) {
        float half = bw_f16_to_f32((uint16_t)i), brain = bw_bf16_to_f32((uint16_t)i);
        if (isnan(half) || isnan(brain)) /* above */
            continue;
        halves[count] = brains[count] = (uint16_t)i;
        half_bytes[count] = byte_of(table, (double)half, true, false);
        brain_bytes[count++] = byte_of(table, (double)brain, true, false);
    }
    struct pb file = cast_model(FLOAT16, table->onnx, 1, NULL, 25);
    expect_cast(&file, NULL, BW_F16, halves, table->dtype, half_bytes, count);
    file = cast_model(BFLOAT16, table->onnx, 1, NULL, 25);
    expect_cast(&file, NULL, BW_BF16, brains, table->dtype, brain_bytes, count);
}

static void floats_on(const char *name)
{
    struct table tables[5];
    struct bw_ctx *ctx = NULL;
    struct bw_device *device = NULL;
    struct bw_err err = {0};
    tables_make(tables);
    if (name && (!BW_OK(bw_ctx_create(NULL, &ctx, &err), &err) ||
                 !BW_OK(bw_device_open(ctx, name, &device, &err), &err))) {
        bw_ctx_destroy(ctx);
        return;
    }
    for (int i = 0; i < 5; i++) {
        every_byte_is_its_value(device, &tables[i]);
        every_number_is_rounded(device, &tables[i], 1, 25);
        if (tables[i].onnx == E2M1)
            continue;
        every_number_is_rounded(device, &tables[i], 0, 25);
        if (!tables[i].signed_zero) {
            every_number_is_rounded(device, &tables[i], 1, 23);
            every_number_is_rounded(device, &tables[i], 0, 19);
        }
    }
    bw_device_close(device);
    bw_ctx_destroy(ctx);
}

static void floats_on_the_evaluator(void)
{
    struct table tables[5];
    tables_make(tables);
    floats_on(NULL);
    for (int i = 0; i < 5; i++)
        narrow_floats_are_rounded(&tables[i]);
}

static void floats_on_devices(void)
{
    floats_on("host:0");
    floats_on("mockkfd+amd@gfx1100,cu=2,vram=64M");
}

static void powers_of_two(void)
{
    static const double x[] = {1,        1.4,        1.5,     1.6,       2,        0,   0x1p-127,
                               0x1p-128, 0x1.8p-127, 0x1p127, 0x1.8p127, INFINITY, NAN, -1};
    static const uint8_t up[] = {127, 128, 128, 128, 128, 0, 0, 0, 1, 254, 254, 254, 255, 255},
                         down[] = {127, 127, 127, 127, 128, 0, 0, 0, 0, 254, 254, 254, 255, 255},
                         strict[] = {127, 127, 128, 128, 128, 255, 0, 255, 1, 254, 255, 255, 255, 255};
    int64_t count = BW_COUNT_OF(x);
    struct pb file = cast_model(DOUBLE, E8M0, 1, NULL, 24);
    expect_cast(&file, NULL, BW_F64, x, BW_F8E8M0, up, count);
    file = cast_model(DOUBLE, E8M0, 1, "down", 24);
    expect_cast(&file, NULL, BW_F64, x, BW_F8E8M0, down, count);
    file = cast_model(DOUBLE, E8M0, 0, "nearest", 24);
    expect_cast(&file, NULL, BW_F64, x, BW_F8E8M0, strict, count);
    static const uint8_t bytes[] = {0, 1, 127, 254, 255};
    static const float values[] = {0x1p-127f, 0x1p-126f, 1, 0x1p127f};
    file = cast_model(E8M0, FLOAT, 1, NULL, 24);
    struct bw_value input = list(BW_F8E8M0, 5, bytes), output = {0};
    struct bw_err err = {0};
    if (BW_OK(run_file(&file, NULL, &input, &output, &err), &err)) {
        BW_BYTES(output.array.data, values, sizeof values);
        BW_TRUE(isnan(((const float *)output.array.data)[4]));
    }
    bw_value_free(&output);
}

/* ---- integers ---- */

static void integers(void)
{
    static const int32_t wide[] = {0, 1, 7, 8, 15, 16, -1, -8, -9, 200};
    static const int8_t i4[] = {0, 1, 7, -8, -1, 0, -1, -8, 7, -8}, i2[] = {0, 1, -1, 0, -1, 0, -1, 0, -1, 0};
    static const uint8_t u4[] = {0, 1, 7, 8, 15, 0, 15, 8, 7, 8}, u2[] = {0, 1, 3, 0, 3, 0, 3, 0, 3, 0};
    static const float real[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 1e9f, -1e9f, NAN, 7.4f, -3.6f};
    static const int8_t real_i4[] = {0, 2, 2, 0, -2, 7, -8, 0, 7, -4},
                        real_i2[] = {0, 1, 1, 0, -2, 1, -2, 0, 1, -2};
    static const uint8_t real_u4[] = {0, 2, 2, 0, 0, 15, 0, 0, 7, 0},
                         real_u2[] = {0, 2, 2, 0, 0, 3, 0, 0, 3, 0};
    const struct {
        int onnx;
        enum bw_dtype dtype;
        const void *of_wide, *of_real;
    } cases[] = {{INT4, BW_I4, i4, real_i4},
                 {UINT4, BW_U4, u4, real_u4},
                 {INT2, BW_I2, i2, real_i2},
                 {UINT2, BW_U2, u2, real_u2}};
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct pb file = cast_model(INT32, cases[i].onnx, 1, NULL, 25);
        expect_cast(&file, NULL, BW_I32, wide, cases[i].dtype, cases[i].of_wide, 10);
        file = cast_model(FLOAT, cases[i].onnx, 1, NULL, 25);
        expect_cast(&file, NULL, BW_F32, real, cases[i].dtype, cases[i].of_real, 10);
    }
    static const uint8_t eights[] = {0, 0x38, 0x40, 0xc0, 0x7e}; /* 0 1 2 -2 448 in E4M3FN */
    static const int8_t of_eights[] = {0, 1, 2, -2, 7};
    struct pb file = cast_model(E4M3FN, INT4, 1, NULL, 21);
    expect_cast(&file, NULL, BW_F8E4M3FN, eights, BW_I4, (const uint8_t *)of_eights, 5);
    static const uint8_t back[] = {0xd0, 0xb8, 0, 0x4e}; /* -8 -1 0 7 */
    static const int8_t fours[] = {-8, -1, 0, 7};
    file = cast_model(INT4, E4M3FN, 1, NULL, 21);
    expect_cast(&file, NULL, BW_I4, fours, BW_F8E4M3FN, back, 4);
    file = cast_model(INT4, INT8, 1, NULL, 21);
    expect_cast(&file, NULL, BW_I8, fours, BW_I8, (const uint8_t *)fours, 4); /* bytes may come as such */
}

static void text(void)
{
    static const uint8_t bytes[] = {0x3c, 0x7f, 0xc0}; /* 1.5 NaN -2 */
    static const char *const words[] = {"1.5", "NaN", "-2.0"};
    struct pb file = cast_model(E4M3FN, PB_STRING, 1, NULL, 21);
    struct bw_value input = list(BW_F8E4M3FN, 3, bytes), strings = {0}, output = {0};
    struct bw_err err = {0};
    if (BW_OK(run_file(&file, NULL, &input, &strings, &err), &err))
        for (int i = 0; i < 3; i++) {
            const struct bw_string *string = (const struct bw_string *)strings.array.data + i;
            BW_EQ(string->size_bytes, strlen(words[i]));
            BW_BYTES(string->data, words[i], strlen(words[i]));
        }
    file = cast_model(PB_STRING, E4M3FN, 1, NULL, 21);
    if (BW_OK(run_file(&file, NULL, &strings, &output, &err), &err) && BW_EQ(output.array.dtype, BW_F8E4M3FN))
        BW_BYTES(output.array.data, bytes, 3);
    bw_value_free(&strings);
    bw_value_free(&output);
}

/* ---- initializers ---- */

/* An initializer as the output; typed: its bytes as int32_data. */
static int initializer(int onnx, int64_t count, const void *bytes, size_t size_bytes, bool typed,
                       struct bw_value *output, struct bw_err *err)
{
    struct pb graph = {.size_bytes = 0}, tensor = {.size_bytes = 0};
    if (typed) {
        pb_int(&tensor, 1, count);
        pb_int(&tensor, 2, onnx);
        pb_text(&tensor, 8, "w");
        for (size_t i = 0; i < size_bytes; i++)
            pb_int(&tensor, 5, ((const uint8_t *)bytes)[i]);
    } else {
        tensor = pb_tensor("w", onnx, 1, &count, bytes, size_bytes);
    }
    pb_message(&graph, 5, &tensor);
    pb_node(&graph, "Identity", "w", "y", NULL);
    pb_graph_output(&graph, "y", onnx, "N");
    struct pb file = pb_model(&graph, 25);
    return run_file(&file, NULL, NULL, output, err);
}

static void packed_elements(void)
{
    static const uint8_t bytes[] = {0x21, 0xf8, 0x07}, twos[] = {0xe4, 0x02};
    static const int8_t i4[] = {1, 2, -8, -1, 7}, i2[] = {0, 1, -2, -1, -2};
    static const uint8_t u4[] = {1, 2, 8, 15, 7}, u2[] = {0, 1, 2, 3, 2};
    const struct {
        int onnx;
        enum bw_dtype dtype;
        const uint8_t *bytes;
        size_t size_bytes;
        const void *elements;
    } cases[] = {{INT4, BW_I4, bytes, 3, i4}, {UINT4, BW_U4, bytes, 3, u4}, {E2M1, BW_F4E2M1, bytes, 3, u4},
                 {INT2, BW_I2, twos, 2, i2},  {UINT2, BW_U2, twos, 2, u2},  {E5M2, BW_F8E5M2, u4, 5, u4},
                 {E8M0, BW_F8E8M0, u4, 5, u4}};
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++)
        for (int typed = 0; typed < 2; typed++) {
            struct bw_value output = {0};
            struct bw_err err = {0};
            if (BW_OK(
                    initializer(cases[i].onnx, 5, cases[i].bytes, cases[i].size_bytes, typed, &output, &err),
                    &err) &&
                BW_EQ(output.array.dtype, cases[i].dtype))
                BW_BYTES(output.array.data, cases[i].elements, 5);
            bw_value_free(&output);
            /* a byte short, a byte too long */
            for (int by = -1; by <= 1; by += 2) {
                uint8_t padded[8] = {0};
                memcpy(padded, cases[i].bytes, cases[i].size_bytes);
                err = (struct bw_err){0};
                BW_EQ(initializer(cases[i].onnx, 5, padded, cases[i].size_bytes + (size_t)by, typed, &output,
                                  &err),
                      -EBADMSG);
                BW_TRUE(strstr(err.what, "tensor 'w'") && strstr(err.what, "byte "));
            }
        }
    struct bw_value output = {0};
    struct bw_err err = {0};
    BW_EQ(initializer(INT4, 1ll << 39, bytes, 3, true, &output, &err), -EBADMSG);
}

/* ---- QuantizeLinear and DequantizeLinear ---- */

static void blocks(void)
{
    static const int64_t w_dims[] = {2, 5}, scale_dims[] = {2, 3};
    static const uint8_t packed[] = {0x21, 0xf8, 0x17, 0x32, 0x54}; /* 1 2 -8 -1 7, 1 2 3 4 5 */
    static const float scales[] = {0.5f, 2, 10, 1, 3, -1},
                       expected[] = {0.5f, 1, -16, -2, 70, 1, 2, 9, 12, -5};
    struct pb graph = {.size_bytes = 0}, attributes = {.size_bytes = 0},
              w = pb_tensor("w", INT4, 2, w_dims, packed, sizeof packed),
              scale = pb_tensor("s", FLOAT, 2, scale_dims, scales, sizeof scales);
    pb_message(&graph, 5, &w);
    pb_message(&graph, 5, &scale);
    pb_attribute_int(&attributes, "axis", -1);
    pb_attribute_int(&attributes, "block_size", 2);
    pb_node(&graph, "DequantizeLinear", "w,s", "y", &attributes);
    pb_attribute_int(&attributes, "output_dtype", INT4);
    pb_node(&graph, "QuantizeLinear", "y,s", "q", &attributes);
    pb_graph_output(&graph, "y", FLOAT, "2,5");
    pb_graph_output(&graph, "q", INT4, "2,5");
    struct pb file = pb_model(&graph, 21);
    struct bw_value outputs[2] = {{0}};
    struct bw_err err = {0};
    static const int8_t elements[] = {1, 2, -8, -1, 7, 1, 2, 3, 4, 5};
    if (BW_OK(run_file(&file, NULL, NULL, outputs, &err), &err)) {
        BW_BYTES(outputs[0].array.data, expected, sizeof expected);
        BW_EQ(outputs[1].array.dtype, BW_I4);
        BW_BYTES(outputs[1].array.data, elements, sizeof elements);
    }
    bw_value_free(&outputs[0]);
    bw_value_free(&outputs[1]);
}

/* y = QuantizeLinear(x, s, z) with z of a type, or output_dtype, and x back. */
static void quantized(int onnx, enum bw_dtype dtype, const uint8_t *expected, const float *back)
{
    static const float x[] = {0, 1, -1, 3.7f, -3.7f, 100, -100, 0.26f}, scale = 0.5f;
    struct pb graph = {.size_bytes = 0}, attributes = {.size_bytes = 0},
              s = pb_tensor("s", FLOAT, 0, NULL, &scale, sizeof scale);
    pb_message(&graph, 5, &s);
    pb_attribute_int(&attributes, "output_dtype", onnx);
    pb_node(&graph, "QuantizeLinear", "x,s", "y", &attributes);
    pb_node(&graph, "DequantizeLinear", "y,s", "z", NULL);
    pb_graph_input(&graph, "x", FLOAT, "8");
    pb_graph_output(&graph, "y", onnx, "8");
    pb_graph_output(&graph, "z", FLOAT, "8");
    struct pb file = pb_model(&graph, 25);
    struct bw_value input = list(BW_F32, 8, x), outputs[2] = {{0}};
    struct bw_err err = {0};
    if (BW_OK(run_file(&file, NULL, &input, outputs, &err), &err) && BW_EQ(outputs[0].array.dtype, dtype)) {
        BW_BYTES(outputs[0].array.data, expected, 8);
        BW_BYTES(outputs[1].array.data, back, 8 * sizeof *back);
    }
    bw_value_free(&outputs[0]);
    bw_value_free(&outputs[1]);
}

static void scales(void)
{
    /* x / s: 0 2 -2 7.4 -7.4 200 -200 0.52 */
    quantized(INT4, BW_I4, (const uint8_t[]){0, 2, 0xfe, 7, 0xf9, 7, 0xf8, 1},
              (const float[]){0, 1, -1, 3.5f, -3.5f, 3.5f, -4, 0.5f});
    quantized(UINT4, BW_U4, (const uint8_t[]){0, 2, 0, 7, 0, 15, 0, 1},
              (const float[]){0, 1, 0, 3.5f, 0, 7.5f, 0, 0.5f});
    quantized(INT2, BW_I2, (const uint8_t[]){0, 1, 0xfe, 1, 0xfe, 1, 0xfe, 1},
              (const float[]){0, 0.5f, -1, 0.5f, -1, 0.5f, -1, 0.5f});
    quantized(E2M1, BW_F4E2M1, (const uint8_t[]){0, 4, 12, 7, 15, 7, 15, 1},
              (const float[]){0, 1, -1, 3, -3, 3, -3, 0.25f});
    quantized(E4M3FN, BW_F8E4M3FN, (const uint8_t[]){0, 0x40, 0xc0, 0x4f, 0xcf, 0x74, 0xf4, 0x30},
              (const float[]){0, 1, -1, 3.75f, -3.75f, 96, -96, 0.25f});
}

/* ---- what only moves ---- */

static void types_stay(void)
{
    static const int64_t shape[] = {3, 2}, axes[] = {0}, pads[] = {1, 0, 0, 0};
    static const uint8_t bytes[] = {0x80, 0x7f, 3, 4, 5, 6},
                         expected[] = {0xff, 0xff, 0xff, 0x80, 3, 5, 0x7f, 4, 6}, filler = 0xff;
    struct pb graph = {.size_bytes = 0}, attributes = {.size_bytes = 0};
    struct pb s = pb_tensor("shape", PB_INT64, 1, (const int64_t[]){2}, shape, sizeof shape),
              a = pb_tensor("axes", PB_INT64, 1, (const int64_t[]){1}, axes, sizeof axes),
              p = pb_tensor("pads", PB_INT64, 1, (const int64_t[]){4}, pads, sizeof pads),
              f = pb_tensor("filler", E4M3FN, 0, NULL, &filler, 1);
    pb_message(&graph, 5, &s);
    pb_message(&graph, 5, &a);
    pb_message(&graph, 5, &p);
    pb_message(&graph, 5, &f);
    pb_node(&graph, "Reshape", "x,shape", "r", NULL);
    pb_node(&graph, "Transpose", "r", "t", NULL);
    pb_node(&graph, "Unsqueeze", "t,axes", "u", NULL);
    pb_node(&graph, "Squeeze", "u,axes", "q", NULL);
    pb_node(&graph, "Pad", "q,pads,filler", "d", NULL);
    pb_attribute_int(&attributes, "axis", 0);
    pb_node(&graph, "Flatten", "d", "l", &attributes);
    pb_node(&graph, "Identity", "l", "y", NULL);
    pb_graph_input(&graph, "x", E4M3FN, "6");
    pb_graph_output(&graph, "y", E4M3FN, "1,9");
    struct pb file = pb_model(&graph, 21);
    struct bw_value input = list(BW_U8, 6, bytes), output = {0};
    struct bw_err err = {0};
    if (BW_OK(run_file(&file, NULL, &input, &output, &err), &err) && BW_EQ(output.array.dtype, BW_F8E4M3FN))
        BW_BYTES(output.array.data, expected, sizeof expected);
    bw_value_free(&output);
}

/* Scan over rows, and what it collects. */
static void bodies(void)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6};
    struct pb graph = {.size_bytes = 0}, body = {.size_bytes = 0}, attributes = {.size_bytes = 0};
    pb_node(&body, "Identity", "a", "b", NULL);
    pb_text(&body, 2, "body");
    pb_graph_input(&body, "a", E5M2, "2");
    pb_graph_output(&body, "b", E5M2, "2");
    pb_attribute_int(&attributes, "num_scan_inputs", 1);
    pb_attribute_graph(&attributes, "body", &body);
    pb_node(&graph, "Scan", "x", "y", &attributes);
    pb_graph_input(&graph, "x", E5M2, "3,2");
    pb_graph_output(&graph, "y", E5M2, "3,2");
    struct pb file = pb_model(&graph, 21);
    struct bw_value input = {.kind = BW_VALUE_ARRAY,
                             .array = {.dtype = BW_F8E5M2, .rank = 2, .dims = {3, 2}, .data = (void *)bytes}},
                    output = {0};
    struct bw_err err = {0};
    if (BW_OK(run_file(&file, NULL, &input, &output, &err), &err) && BW_EQ(output.array.dtype, BW_F8E5M2))
        BW_BYTES(output.array.data, bytes, sizeof bytes);
    bw_value_free(&output);
}

/* ---- refusals ---- */

static void refused(const struct pb *file, const struct bw_value *input, int code, const char *where,
                    const char *what)
{
    struct bw_value output = {0};
    struct bw_err err = {0};
    BW_EQ(run_file(file, NULL, input, &output, &err), code);
    if (!BW_TRUE(strstr(err.what, where) && strstr(err.what, what)))
        printf("      expected '%s' and '%s', said: %s\n", where, what, err.what);
    bw_value_free(&output);
}

static void refusals(void)
{
    static const float zeros[4] = {0};
    static const uint8_t bytes[4] = {0, 1, 15, 16};
    struct bw_value reals = list(BW_F32, 4, zeros), eights = list(BW_F8E4M3FN, 4, bytes);
    struct pb file = cast_model(FLOAT, COMPLEX64, 1, NULL, 25);
    refused(&file, &reals, -ENOTSUP, "(Cast, opset 25)", "COMPLEX64");
    file = cast_model(FLOAT, 99, 1, NULL, 25);
    refused(&file, &reals, -EBADMSG, "(Cast, opset 25)", "type number 99, which ONNX does not have");
    file = cast_model(COMPLEX64, FLOAT, 1, NULL, 25);
    refused(&file, &reals, -ENOTSUP, "(Cast, opset 25)", "value 'x' (byte ");
    file = cast_model(FLOAT, E4M3FN, 1, NULL, 13);
    refused(&file, &reals, -EINVAL, "(Cast, opset 13)", "FLOAT8E4M3FN");
    file = cast_model(UINT4, FLOAT, 1, NULL, 21);
    struct bw_value fours = list(BW_U8, 4, bytes);
    refused(&file, &fours, -ERANGE, "element 3", "input 'x'");

    struct pb graph = {.size_bytes = 0}, z = pb_tensor("z", COMPLEX64, 1, (const int64_t[]){1}, zeros, 8);
    pb_message(&graph, 5, &z);
    pb_node(&graph, "Identity", "z", "y", NULL);
    pb_graph_output(&graph, "y", FLOAT, "1");
    file = pb_model(&graph, 17);
    refused(&file, NULL, -ENOTSUP, "(Identity, opset 17)", "value 'z' (byte ");

    graph = (struct pb){.size_bytes = 0};
    pb_node(&graph, "Add", "x,x", "y", NULL);
    pb_graph_input(&graph, "x", E4M3FN, "4");
    pb_graph_output(&graph, "y", E4M3FN, "4");
    file = pb_model(&graph, 25);
    refused(&file, &eights, -EINVAL, "(Add, opset 25)", "f8e4m3fn");

    struct pb attributes = {.size_bytes = 0};
    graph = (struct pb){.size_bytes = 0};
    pb_attribute_tensor(&attributes, "value", &z);
    pb_node(&graph, "Constant", "", "y", &attributes);
    pb_graph_output(&graph, "y", FLOAT, "1");
    file = pb_model(&graph, 17);
    refused(&file, NULL, -ENOTSUP, "(Constant, opset 17)", "attribute 'value' (byte ");
}

BW_TEST_MAIN("onnx_dtypes", {"floats_on_the_evaluator", floats_on_the_evaluator},
             {"floats_on_devices", floats_on_devices}, {"powers_of_two", powers_of_two},
             {"integers", integers}, {"text", text}, {"packed_elements", packed_elements}, {"blocks", blocks},
             {"scales", scales}, {"types_stay", types_stay}, {"bodies", bodies}, {"refusals", refusals})
