/* Sums of products with constants, the canonical form of i64 index arithmetic: see symbolic.h. */
#include <assert.h>

#include "compiler/symbolic.h"

enum { DEPTH_MAX = 64 }; /* of nested sums; canonical ones are chains no longer than BW_SUM_TERMS_MAX */

static bool sum_add_term(struct bw_sum *sum, bw_node atom, int64_t factor)
{
    for (uint32_t i = 0; i < sum->count; i++) {
        if (sum->terms[i].atom != atom)
            continue;
        if (__builtin_add_overflow(sum->terms[i].factor, factor, &sum->terms[i].factor))
            return false;
        if (sum->terms[i].factor == 0)
            sum->terms[i] = sum->terms[--sum->count];
        return true;
    }
    if (factor == 0)
        return true;
    if (sum->count == BW_SUM_TERMS_MAX)
        return false;
    sum->terms[sum->count++] = (struct bw_sum_term){atom, factor};
    return true;
}

static bool sum_collect(struct bw_ir *ir, bw_node node, int64_t factor, struct bw_sum *sum, int depth)
{
    int64_t value, scaled;
    if (bw_ir_const_value_int(ir, node, &value))
        return !__builtin_mul_overflow(value, factor, &scaled) &&
               !__builtin_add_overflow(sum->constant, scaled, &sum->constant);
    enum bw_op op = bw_ir_op(ir, node);
    if (depth >= DEPTH_MAX || bw_ir_dtype(ir, node) != BW_I64)
        return sum_add_term(sum, node, factor);
    switch (op) {
    case BW_OP_ADD:
        return sum_collect(ir, bw_ir_source(ir, node, 0), factor, sum, depth + 1) &&
               sum_collect(ir, bw_ir_source(ir, node, 1), factor, sum, depth + 1);
    case BW_OP_SUB:
        return factor != INT64_MIN && sum_collect(ir, bw_ir_source(ir, node, 0), factor, sum, depth + 1) &&
               sum_collect(ir, bw_ir_source(ir, node, 1), -factor, sum, depth + 1);
    case BW_OP_NEG:
        return factor != INT64_MIN && sum_collect(ir, bw_ir_source(ir, node, 0), -factor, sum, depth + 1);
    case BW_OP_MUL:
        if (bw_ir_const_value_int(ir, bw_ir_source(ir, node, 1), &value))
            return !__builtin_mul_overflow(value, factor, &scaled) &&
                   sum_collect(ir, bw_ir_source(ir, node, 0), scaled, sum, depth + 1);
        if (bw_ir_const_value_int(ir, bw_ir_source(ir, node, 0), &value))
            return !__builtin_mul_overflow(value, factor, &scaled) &&
                   sum_collect(ir, bw_ir_source(ir, node, 1), scaled, sum, depth + 1);
        return sum_add_term(sum, node, factor);
    default:
        return sum_add_term(sum, node, factor);
    }
}

bool bw_sum_from(struct bw_ir *ir, bw_node node, struct bw_sum *sum)
{
    sum->constant = 0;
    sum->count = 0;
    return sum_collect(ir, node, 1, sum, 0);
}

/* Ranges first, by number, so that equal kernels get equal sums; other atoms by age. */
static uint64_t term_rank(const struct bw_ir *ir, bw_node atom)
{
    if (bw_ir_op(ir, atom) == BW_OP_RANGE)
        return bw_ir_range_number(ir, atom);
    return (1ull << 32) + atom;
}

static void sum_sort(const struct bw_ir *ir, struct bw_sum *sum)
{
    for (uint32_t i = 1; i < sum->count; i++) {
        struct bw_sum_term term = sum->terms[i];
        uint32_t at = i;
        for (; at > 0 && term_rank(ir, sum->terms[at - 1].atom) > term_rank(ir, term.atom); at--)
            sum->terms[at] = sum->terms[at - 1];
        sum->terms[at] = term;
    }
}

/* x / d % e or x / d as {x, d}, with e = 0 when there is no modulus. */
struct quotient {
    bw_node x;
    int64_t divisor, modulus;
};

static bool quotient_from(struct bw_ir *ir, bw_node node, struct quotient *quotient)
{
    *quotient = (struct quotient){node, 1, 0};
    int64_t value;
    bool found = false;
    if (bw_ir_op(ir, node) == BW_OP_FLOOR_MOD &&
        bw_ir_const_value_int(ir, bw_ir_source(ir, node, 1), &value) && value > 0) {
        quotient->modulus = value;
        quotient->x = node = bw_ir_source(ir, node, 0);
        found = true;
    }
    if (bw_ir_op(ir, node) == BW_OP_FLOOR_DIV &&
        bw_ir_const_value_int(ir, bw_ir_source(ir, node, 1), &value) && value > 0) {
        quotient->divisor = value;
        quotient->x = bw_ir_source(ir, node, 0);
        found = true;
    }
    return found;
}

/* (x / (d * e)) % f * (e * c) + (x / d % e) * c is (x / d % (e * f)) * c; without f, x / d * c. */
static bool recombine_pair(struct bw_ir *ir, struct bw_sum *sum, uint32_t high_at, uint32_t low_at)
{
    struct quotient high, low;
    if (!quotient_from(ir, sum->terms[high_at].atom, &high) ||
        !quotient_from(ir, sum->terms[low_at].atom, &low) || !low.modulus || high.x != low.x)
        return false;
    int64_t divisor, factor, modulus = 0;
    if (__builtin_mul_overflow(low.divisor, low.modulus, &divisor) || divisor != high.divisor ||
        __builtin_mul_overflow(sum->terms[low_at].factor, low.modulus, &factor) ||
        factor != sum->terms[high_at].factor ||
        (high.modulus && __builtin_mul_overflow(high.modulus, low.modulus, &modulus)))
        return false;
    bw_node joined = bw_sym_div(ir, low.x, low.divisor);
    if (modulus)
        joined = bw_sym_mod(ir, joined, modulus);
    factor = sum->terms[low_at].factor;
    uint32_t first = high_at < low_at ? high_at : low_at, second = high_at < low_at ? low_at : high_at;
    sum->terms[second] = sum->terms[--sum->count];
    sum->terms[first] = sum->terms[--sum->count];
    return joined && sum_collect(ir, joined, factor, sum, 0);
}

static bool recombine(struct bw_ir *ir, struct bw_sum *sum)
{
    for (uint32_t i = 0; i < sum->count; i++)
        for (uint32_t k = 0; k < sum->count; k++)
            if (i != k) {
                struct bw_sum saved = *sum;
                if (recombine_pair(ir, sum, i, k))
                    return true;
                *sum = saved;
            }
    return false;
}

bw_node bw_sum_build(struct bw_ir *ir, const struct bw_sum *original)
{
    struct bw_sum sum = *original;
    while (recombine(ir, &sum))
        ; /* ends: each round removes a term's modulus or a term */
    sum_sort(ir, &sum);
    bw_node built = 0;
    for (uint32_t i = 0; i < sum.count; i++) {
        bw_node factor = bw_ir_const_int(ir, BW_I64, sum.terms[i].factor);
        bw_node term = bw_ir_binary(ir, BW_OP_MUL, sum.terms[i].atom, factor);
        built = built ? bw_ir_binary(ir, BW_OP_ADD, built, term) : term;
    }
    bw_node constant = bw_ir_const_int(ir, BW_I64, sum.constant);
    return built ? bw_ir_binary(ir, BW_OP_ADD, built, constant) : constant;
}
