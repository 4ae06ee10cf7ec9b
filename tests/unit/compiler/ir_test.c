/* Goal: nodes are unique, ill-formed ones are refused, folding and bounds never change a value. */
#include <bellwire/err.h>

#include <math.h>

#include "base/rng.h"
#include "compiler/ir.h"
#include "tests/check.h"

static struct bw_ir *new_ir(void)
{
    struct bw_ir *ir = NULL;
    BW_EQ(bw_ir_create(&ir, NULL), 0);
    return ir;
}

static void equal_parts_are_one_node(void)
{
    struct bw_ir *ir = new_ir();
    struct bw_shape shape = {2, {3, 4}}, same = {2, {3, 4, 99}};
    bw_node a = bw_ir_buffer(ir, BW_F32, 0, &shape), b = bw_ir_buffer(ir, BW_F32, 1, &shape);
    BW_EQ(bw_ir_buffer(ir, BW_F32, 0, &same), a);
    BW_EQ(bw_ir_binary(ir, BW_OP_ADD, a, b), bw_ir_binary(ir, BW_OP_ADD, a, b));
    BW_TRUE(bw_ir_binary(ir, BW_OP_ADD, a, b) != bw_ir_binary(ir, BW_OP_ADD, b, a));
    for (int i = 0; i < 5000; i++)
        BW_TRUE(bw_ir_const_int(ir, BW_I64, i) == bw_ir_const_int(ir, BW_I64, i));
    BW_EQ(bw_ir_buffer_number(ir, b), 1);
    BW_EQ(bw_ir_error(ir, NULL), 0);
    bw_ir_destroy(ir);
}

static void ill_formed_nodes_are_refused_and_named(void)
{
    struct bw_shape shape = {2, {3, 4}}, other = {1, {12}}, wrong = {1, {13}};
    for (int which = 0; which < 11; which++) {
        struct bw_ir *ir = new_ir();
        bw_node a = bw_ir_buffer(ir, BW_F32, 0, &shape), i = bw_ir_buffer(ir, BW_I32, 1, &shape);
        struct bw_bounds outside = {{0, 0}, {3, 5}};
        uint32_t twice[] = {1, 1};
        bw_node made = 1;
        switch (which) {
        case 0:
            made = bw_ir_binary(ir, BW_OP_ADD, a, i);
            break;
        case 1:
            made = bw_ir_binary(ir, BW_OP_ADD, a, bw_ir_buffer(ir, BW_F32, 2, &other));
            break;
        case 2:
            made = bw_ir_reshape(ir, a, &wrong);
            break;
        case 3:
            made = bw_ir_shrink(ir, a, &outside);
            break;
        case 4:
            made = bw_ir_permute(ir, a, twice);
            break;
        case 5:
            made = bw_ir_reduce(ir, BW_OP_ADD, a, 4);
            break;
        case 6:
            made = bw_ir_unary(ir, BW_OP_SQRT, i);
            break;
        case 7:
            made = bw_ir_ternary(ir, BW_OP_WHERE, i, a, a);
            break;
        case 8: /* storage types have no tensors */
            made = bw_ir_buffer(ir, BW_F8E4M3FN, 3, &shape);
            break;
        case 9:
            made = bw_ir_cast(ir, BW_I4, i);
            break;
        default: {
            struct bw_shape huge = {3, {1 << 20, 1 << 20, 1 << 20}};
            made = bw_ir_buffer(ir, BW_F32, 3, &huge);
        }
        }
        BW_EQ(made, 0);
        struct bw_err err = {0};
        BW_TRUE(bw_ir_error(ir, &err) < 0);
        BW_TRUE(err.what[0] != 0);
        BW_EQ(bw_ir_binary(ir, BW_OP_ADD, made, a), 0); /* passes through */
        bw_ir_destroy(ir);
    }
}

static void identities_respect_nan_and_signed_zero(void)
{
    struct bw_ir *ir = new_ir();
    struct bw_shape scalar = {0};
    bw_node x = bw_ir_buffer(ir, BW_F32, 0, &scalar), n = bw_ir_buffer(ir, BW_I32, 1, &scalar);
    bw_node zero = bw_ir_const_float(ir, BW_F32, 0.0), minus_zero = bw_ir_const_float(ir, BW_F32, -0.0);
    BW_TRUE(bw_ir_binary(ir, BW_OP_ADD, x, zero) != x);
    BW_EQ(bw_ir_binary(ir, BW_OP_ADD, x, minus_zero), x);
    BW_TRUE(bw_ir_op(ir, bw_ir_binary(ir, BW_OP_MUL, x, zero)) == BW_OP_MUL);
    BW_EQ(bw_ir_binary(ir, BW_OP_MUL, x, bw_ir_const_float(ir, BW_F32, 1)), x);
    BW_EQ(bw_ir_binary(ir, BW_OP_MUL, n, bw_ir_const_int(ir, BW_I32, 0)), bw_ir_const_int(ir, BW_I32, 0));
    BW_EQ(bw_ir_cast(ir, BW_I8, bw_ir_const_float(ir, BW_F32, 1e9)), bw_ir_const_int(ir, BW_I8, 127));
    BW_EQ(bw_ir_cast(ir, BW_I8, bw_ir_const_float(ir, BW_F32, NAN)), bw_ir_const_int(ir, BW_I8, 0));
    BW_EQ(bw_ir_cast(ir, BW_U8, bw_ir_const_int(ir, BW_I32, -1)), bw_ir_const_int(ir, BW_U8, 255));
    BW_EQ(
        bw_ir_binary(ir, BW_OP_DIV, bw_ir_const_int(ir, BW_I64, INT64_MIN), bw_ir_const_int(ir, BW_I64, -1)),
        bw_ir_const_int(ir, BW_I64, INT64_MIN));
    BW_EQ(bw_ir_binary(ir, BW_OP_FLOOR_DIV, bw_ir_const_int(ir, BW_I32, -7), bw_ir_const_int(ir, BW_I32, 2)),
          bw_ir_const_int(ir, BW_I32, -4));
    BW_EQ(bw_ir_binary(ir, BW_OP_FLOOR_MOD, bw_ir_const_int(ir, BW_I32, -7), bw_ir_const_int(ir, BW_I32, 2)),
          bw_ir_const_int(ir, BW_I32, 1));
    BW_EQ(bw_ir_error(ir, NULL), 0);
    bw_ir_destroy(ir);
}

/* Random index expressions over three ranges, their value computed by constant folding at every point. */
static bw_node random_index(struct bw_ir *ir, struct bw_rng *rng, const bw_node *leaves, int depth)
{
    static const enum bw_op ops[] = {BW_OP_ADD,       BW_OP_SUB, BW_OP_MUL,       BW_OP_FLOOR_DIV,
                                     BW_OP_FLOOR_MOD, BW_OP_DIV, BW_OP_TRUNC_MOD, BW_OP_MAX,
                                     BW_OP_MIN,       BW_OP_AND, BW_OP_XOR};
    if (depth == 0 || bw_rng_below(rng, 5) == 0)
        return bw_rng_below(rng, 3) ? leaves[bw_rng_below(rng, 3)]
                                    : bw_ir_const_int(ir, BW_I64, (int64_t)bw_rng_below(rng, 12) - 3);
    enum bw_op op = ops[bw_rng_below(rng, sizeof ops / sizeof ops[0])];
    bw_node a = random_index(ir, rng, leaves, depth - 1), b = random_index(ir, rng, leaves, depth - 1);
    return bw_ir_binary(ir, op, a, b);
}

static int64_t value_at(struct bw_ir *ir, bw_node node, const bw_node *leaves, const int64_t *point)
{
    for (int i = 0; i < 3; i++)
        if (node == leaves[i])
            return point[i];
    int64_t value = 0;
    if (bw_ir_const_value_int(ir, node, &value))
        return value;
    int64_t a = value_at(ir, bw_ir_source(ir, node, 0), leaves, point),
            b = value_at(ir, bw_ir_source(ir, node, 1), leaves, point);
    bw_node folded =
        bw_ir_binary(ir, bw_ir_op(ir, node), bw_ir_const_int(ir, BW_I64, a), bw_ir_const_int(ir, BW_I64, b));
    BW_TRUE(bw_ir_const_value_int(ir, folded, &value));
    return value;
}

static void bounds_contain_every_value(void)
{
    struct bw_rng rng = {7};
    for (int round = 0; round < 400; round++) {
        struct bw_ir *ir = new_ir();
        static const int64_t sizes[] = {3, 5, 4};
        bw_node leaves[3];
        for (uint32_t i = 0; i < 3; i++)
            leaves[i] = bw_ir_range(ir, i, BW_RANGE_LOOP, bw_ir_const_int(ir, BW_I64, sizes[i]));
        bw_node index = random_index(ir, &rng, leaves, 4);
        int64_t min, max;
        bw_ir_bounds(ir, index, &min, &max);
        for (int64_t at = 0; at < 3 * 5 * 4; at++) {
            int64_t point[] = {at / 20, at / 4 % 5, at % 4};
            int64_t value = value_at(ir, index, leaves, point);
            if (value < min || value > max) {
                printf("    round %d: %lld outside %lld..%lld\n", round, (long long)value, (long long)min,
                       (long long)max);
                BW_TRUE(value >= min && value <= max);
                break;
            }
        }
        bw_ir_destroy(ir);
    }
}

static void keys_depend_on_meaning_only(void)
{
    struct bw_key keys[2];
    for (int turn = 0; turn < 2; turn++) {
        struct bw_ir *ir = new_ir();
        struct bw_shape shape = {2, {8, 8}};
        if (turn) /* other ids, same meaning */
            bw_ir_binary(ir, BW_OP_MUL, bw_ir_buffer(ir, BW_F64, 7, &shape),
                         bw_ir_buffer(ir, BW_F64, 8, &shape));
        bw_node a = bw_ir_buffer(ir, BW_F32, 0, &shape);
        bw_node sum = bw_ir_reduce(ir, BW_OP_ADD, bw_ir_unary(ir, BW_OP_EXP2, a), 2);
        keys[turn] = bw_ir_key(ir, sum);
        struct bw_key other = bw_ir_key(ir, bw_ir_reduce(ir, BW_OP_ADD, bw_ir_unary(ir, BW_OP_EXP2, a), 1));
        BW_TRUE(memcmp(&other, &keys[turn], sizeof other) != 0);
        bw_ir_destroy(ir);
    }
    BW_BYTES(&keys[0], &keys[1], sizeof keys[0]);
}

/* Every f16 value goes through f32 and back, and every midpoint between neighbours ties to even. */
static void half_conversions_are_exact(void)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = bw_f16_to_f32((uint16_t)bits);
        if (isnan(value)) {
            BW_TRUE(isnan(bw_f16_to_f32(bw_f16_from_f32(value))));
            continue;
        }
        if (bw_f16_from_f32(value) != bits)
            BW_EQ(bw_f16_from_f32(value), bits);
        if ((bits & 0x7fff) >= 0x7bff)
            continue;
        double next = bw_f16_to_f32((uint16_t)(bits + 1)), middle = ((double)value + next) / 2;
        uint32_t even = bits & 1 ? bits + 1 : bits;
        if (bw_f16_from_f64(middle) != even)
            BW_EQ(bw_f16_from_f64(middle), even);
    }
    BW_EQ(bw_f16_from_f32(65520.0f), 0x7c00);
    BW_EQ(bw_f16_from_f32(65519.0f), 0x7bff);
    BW_EQ(bw_f16_from_f64(0x1p-25), 0);
    BW_EQ(bw_f16_from_f64(0x1.0000001p-25), 1);
    BW_EQ(bw_bf16_from_f32(1.0f), 0x3f80);
    BW_EQ(bw_bf16_from_f64(1.00390625), 0x3f80);
    BW_EQ(bw_bf16_from_f64(1.01171875), 0x3f82);
}

BW_TEST_MAIN("ir", {"equal_parts_are_one_node", equal_parts_are_one_node},
             {"ill_formed_nodes_are_refused_and_named", ill_formed_nodes_are_refused_and_named},
             {"identities_respect_nan_and_signed_zero", identities_respect_nan_and_signed_zero},
             {"bounds_contain_every_value", bounds_contain_every_value},
             {"keys_depend_on_meaning_only", keys_depend_on_meaning_only},
             {"half_conversions_are_exact", half_conversions_are_exact})
