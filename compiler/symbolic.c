/* Rules of division, modulus, comparison and conjunction over canonical sums: see symbolic.h.
 *
 * Throughout, "/" and "%" are FLOOR_DIV and FLOOR_MOD by a positive constant d. A rule that looks at bounds
 * is used only where all partial sums stay below 2^62 in magnitude, so that nothing wraps. */
#include "compiler/symbolic.h"

#include <assert.h>

static const int64_t SAFE = (int64_t)1 << 62;

bw_node bw_sym_const(struct bw_ir *ir, int64_t value)
{
    return bw_ir_const_int(ir, BW_I64, value);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* Bounds of the sum in exact arithmetic; false when a partial sum could leave the safe interval. */
static bool sum_bounds(const struct bw_ir *ir, const struct bw_sum *sum, int64_t *min, int64_t *max)
{
    __int128 low = sum->constant, high = sum->constant;
    if (sum->constant <= -SAFE || sum->constant >= SAFE)
        return false;
    for (uint32_t i = 0; i < sum->count; i++) {
        int64_t atom_min, atom_max, factor = sum->terms[i].factor;
        bw_ir_bounds(ir, sum->terms[i].atom, &atom_min, &atom_max);
        __int128 a = (__int128)atom_min * factor, b = (__int128)atom_max * factor;
        low += a < b ? a : b;
        high += a < b ? b : a;
        if (low <= -SAFE || high >= SAFE)
            return false;
    }
    *min = (int64_t)low;
    *max = (int64_t)high;
    return true;
}

/* Moves the terms (and the part of the constant) that d divides from sum to quotient, divided. */
static void split_divisible(const struct bw_sum *sum, int64_t d, struct bw_sum *quotient, struct bw_sum *rest)
{
    *quotient = (struct bw_sum){.constant = floor_div(sum->constant, d)};
    *rest = (struct bw_sum){.constant = sum->constant - quotient->constant * d};
    for (uint32_t i = 0; i < sum->count; i++) {
        struct bw_sum_term term = sum->terms[i];
        if (term.factor % d == 0)
            quotient->terms[quotient->count++] = (struct bw_sum_term){term.atom, term.factor / d};
        else
            rest->terms[rest->count++] = term;
    }
}

/* Writes rest as g * x + y with 0 <= y < g, for some g > 1 that divides d. */
static bool split_common(struct bw_ir *ir, const struct bw_sum *rest, int64_t d, int64_t *g, struct bw_sum *x,
                         struct bw_sum *y)
{
    for (uint32_t i = 0; i < rest->count; i++) {
        int64_t min, max;
        *g = gcd(rest->terms[i].factor, d);
        if (*g <= 1)
            continue;
        split_divisible(rest, *g, x, y);
        if (sum_bounds(ir, y, &min, &max) && min >= 0 && max < *g)
            return true;
    }
    return false;
}

static bool is_div_by_const(struct bw_ir *ir, bw_node node, enum bw_op op, bw_node *x, int64_t *d)
{
    if (bw_ir_op(ir, node) != op || !bw_ir_const_value_int(ir, bw_ir_source(ir, node, 1), d) || *d <= 0)
        return false;
    *x = bw_ir_source(ir, node, 0);
    return true;
}

static bw_node plain(struct bw_ir *ir, enum bw_op op, bw_node a, int64_t d)
{
    return bw_ir_binary(ir, op, a, bw_sym_const(ir, d));
}

/* rest / d where nothing in rest is divisible by d. */
static bw_node div_rest(struct bw_ir *ir, const struct bw_sum *rest, int64_t d)
{
    int64_t g, inner_d;
    struct bw_sum x, y;
    bw_node inner;
    if (split_common(ir, rest, d, &g, &x, &y))
        return bw_sym_div(ir, bw_sum_build(ir, &x), d / g);
    if (rest->count == 1 && rest->terms[0].factor == 1 &&
        is_div_by_const(ir, rest->terms[0].atom, BW_OP_FLOOR_DIV, &inner, &inner_d) && inner_d < SAFE / d) {
        /* (x / e + c) / d = (x + c * e) / (e * d); 0 <= c < d here */
        bw_node moved = bw_sym_add(ir, inner, bw_sym_const(ir, rest->constant * inner_d));
        return bw_sym_div(ir, moved, inner_d * d);
    }
    return plain(ir, BW_OP_FLOOR_DIV, bw_sum_build(ir, rest), d);
}

bw_node bw_sym_div(struct bw_ir *ir, bw_node a, int64_t d)
{
    struct bw_sum sum, quotient, rest;
    int64_t min, max;
    if (!a || d <= 0 || d >= SAFE || !bw_sum_from(ir, a, &sum) || !sum_bounds(ir, &sum, &min, &max))
        return plain(ir, BW_OP_FLOOR_DIV, a, d);
    if (d == 1)
        return a;
    if (floor_div(min, d) == floor_div(max, d))
        return bw_sym_const(ir, floor_div(min, d));
    split_divisible(&sum, d, &quotient, &rest);
    if (!sum_bounds(ir, &rest, &min, &max))
        return plain(ir, BW_OP_FLOOR_DIV, a, d);
    if (floor_div(min, d) == floor_div(max, d)) {
        quotient.constant += floor_div(min, d);
        return bw_sum_build(ir, &quotient);
    }
    bw_node divided = div_rest(ir, &rest, d);
    if (!quotient.count && !quotient.constant)
        return divided;
    return bw_sym_add(ir, bw_sum_build(ir, &quotient), divided);
}

static bw_node mod_rest(struct bw_ir *ir, const struct bw_sum *rest, int64_t d)
{
    int64_t g, inner_d;
    struct bw_sum x, y;
    bw_node inner;
    if (split_common(ir, rest, d, &g, &x, &y)) {
        bw_node high = bw_sym_mod(ir, bw_sum_build(ir, &x), d / g);
        return bw_sym_add(ir, bw_sym_mul(ir, high, g), bw_sum_build(ir, &y));
    }
    if (rest->count == 1 && rest->terms[0].factor == 1 && rest->constant == 0 &&
        is_div_by_const(ir, rest->terms[0].atom, BW_OP_FLOOR_MOD, &inner, &inner_d) && inner_d % d == 0)
        return bw_sym_mod(ir, inner, d);
    return plain(ir, BW_OP_FLOOR_MOD, bw_sum_build(ir, rest), d);
}

bw_node bw_sym_mod(struct bw_ir *ir, bw_node a, int64_t d)
{
    struct bw_sum sum, quotient, rest;
    int64_t min, max;
    if (!a || d <= 0 || d >= SAFE || !bw_sum_from(ir, a, &sum) || !sum_bounds(ir, &sum, &min, &max))
        return plain(ir, BW_OP_FLOOR_MOD, a, d);
    if (d == 1)
        return bw_sym_const(ir, 0);
    if (floor_div(min, d) == floor_div(max, d)) {
        sum.constant -= floor_div(min, d) * d;
        return bw_sum_build(ir, &sum);
    }
    split_divisible(&sum, d, &quotient, &rest);
    if (!sum_bounds(ir, &rest, &min, &max))
        return plain(ir, BW_OP_FLOOR_MOD, a, d);
    if (floor_div(min, d) == floor_div(max, d)) {
        rest.constant -= floor_div(min, d) * d;
        return bw_sum_build(ir, &rest);
    }
    return mod_rest(ir, &rest, d);
}

bw_node bw_sym_add(struct bw_ir *ir, bw_node a, bw_node b)
{
    struct bw_sum sum;
    if (!a || !b)
        return 0;
    bw_node whole = bw_ir_binary(ir, BW_OP_ADD, a, b);
    if (!whole || !bw_sum_from(ir, whole, &sum))
        return whole;
    return bw_sum_build(ir, &sum);
}

bw_node bw_sym_mul(struct bw_ir *ir, bw_node a, int64_t factor)
{
    struct bw_sum sum;
    bw_node whole = bw_ir_binary(ir, BW_OP_MUL, a, bw_sym_const(ir, factor));
    return whole && bw_sum_from(ir, whole, &sum) ? bw_sum_build(ir, &sum) : whole;
}

/* g * x + y < c with 0 <= y < g and g | c is x < c / g: drops what cannot decide a comparison. */
static bool less_drop_small(struct bw_ir *ir, struct bw_sum *sum, int64_t *limit)
{
    for (uint32_t i = 0; i < sum->count; i++) {
        int64_t g = gcd(sum->terms[i].factor, *limit), min, max;
        struct bw_sum x, y;
        if (g <= 1)
            continue;
        split_divisible(sum, g, &x, &y);
        if (!y.count || !sum_bounds(ir, &y, &min, &max) || min < 0 || max >= g)
            continue;
        *sum = x;
        *limit /= g;
        return true;
    }
    return false;
}

/* sum < limit, sum without constant, in canonical form. */
static bw_node less_canonical(struct bw_ir *ir, struct bw_sum *sum, int64_t limit)
{
    while (less_drop_small(ir, sum, &limit)) {
        limit -= sum->constant;
        sum->constant = 0;
    }
    int64_t common = 0, d;
    for (uint32_t i = 0; i < sum->count; i++)
        common = gcd(common, sum->terms[i].factor);
    if (common > 1) {
        for (uint32_t i = 0; i < sum->count; i++)
            sum->terms[i].factor /= common;
        limit = -floor_div(-limit, common); /* x * g < c is x < ceil(c / g) */
    }
    bw_node x;
    if (sum->count == 1 && sum->terms[0].factor * sum->terms[0].factor == 1 &&
        is_div_by_const(ir, sum->terms[0].atom, BW_OP_FLOOR_DIV, &x, &d) && limit > -SAFE / d &&
        limit < SAFE / d) {
        if (sum->terms[0].factor == 1) /* x / d < c is x < c * d */
            return bw_sym_less(ir, x, bw_sym_const(ir, limit * d));
        /* -(x / d) < c is x / d >= 1 - c is x >= (1 - c) * d */
        return bw_sym_less(ir, bw_sym_const(ir, (1 - limit) * d - 1), x);
    }
    return bw_ir_binary(ir, BW_OP_LESS, bw_sum_build(ir, sum), bw_sym_const(ir, limit));
}

bw_node bw_sym_less(struct bw_ir *ir, bw_node a, bw_node b)
{
    struct bw_sum sum;
    int64_t min, max;
    if (!a || !b)
        return 0;
    bw_node difference = bw_ir_binary(ir, BW_OP_SUB, a, b);
    int64_t a_min, a_max, b_min, b_max;
    bw_ir_bounds(ir, a, &a_min, &a_max);
    bw_ir_bounds(ir, b, &b_min, &b_max);
    if (a_max < b_min)
        return bw_ir_const_int(ir, BW_BOOL, 1);
    if (a_min >= b_max)
        return bw_ir_const_int(ir, BW_BOOL, 0);
    struct bw_sum part;
    bool safe = bw_sum_from(ir, a, &part) && sum_bounds(ir, &part, &min, &max) && bw_sum_from(ir, b, &part) &&
                sum_bounds(ir, &part, &min, &max);
    if (!safe || !bw_sum_from(ir, difference, &sum) || !sum_bounds(ir, &sum, &min, &max))
        return bw_ir_binary(ir, BW_OP_LESS, a, b);
    if (max < 0 || min >= 0)
        return bw_ir_const_int(ir, BW_BOOL, max < 0);
    int64_t limit = -sum.constant;
    sum.constant = 0;
    return less_canonical(ir, &sum, limit);
}

static bw_node sym_equal(struct bw_ir *ir, enum bw_op op, bw_node a, bw_node b)
{
    struct bw_sum sum;
    int64_t min, max;
    bw_node difference = bw_ir_binary(ir, BW_OP_SUB, a, b);
    if (difference && bw_sum_from(ir, difference, &sum) && sum_bounds(ir, &sum, &min, &max)) {
        if (min == 0 && max == 0)
            return bw_ir_const_int(ir, BW_BOOL, op == BW_OP_EQUAL);
        if (min > 0 || max < 0)
            return bw_ir_const_int(ir, BW_BOOL, op == BW_OP_NOT_EQUAL);
    }
    return bw_ir_binary(ir, op, a, b);
}

enum { CONJUNCTS_MAX = 24 };

static bool conjuncts_collect(struct bw_ir *ir, bw_node node, bw_node *list, uint32_t *count)
{
    if (bw_ir_op(ir, node) == BW_OP_AND)
        return conjuncts_collect(ir, bw_ir_source(ir, node, 0), list, count) &&
               conjuncts_collect(ir, bw_ir_source(ir, node, 1), list, count);
    int64_t limit, other;
    for (uint32_t i = 0; i < *count; i++) {
        if (list[i] == node)
            return true;
        /* x < 3 and x < 5 is x < 3 */
        if (bw_ir_op(ir, node) == BW_OP_LESS && bw_ir_op(ir, list[i]) == BW_OP_LESS &&
            bw_ir_source(ir, node, 0) == bw_ir_source(ir, list[i], 0) &&
            bw_ir_dtype(ir, bw_ir_source(ir, node, 0)) == BW_I64 &&
            bw_ir_const_value_int(ir, bw_ir_source(ir, node, 1), &limit) &&
            bw_ir_const_value_int(ir, bw_ir_source(ir, list[i], 1), &other)) {
            if (limit < other)
                list[i] = node;
            return true;
        }
    }
    if (*count == CONJUNCTS_MAX)
        return false;
    list[(*count)++] = node;
    return true;
}

bw_node bw_sym_and(struct bw_ir *ir, bw_node a, bw_node b)
{
    bw_node list[CONJUNCTS_MAX];
    uint32_t count = 0;
    if (!a || !b)
        return 0;
    if (bw_ir_dtype(ir, a) != BW_BOOL || !conjuncts_collect(ir, a, list, &count) ||
        !conjuncts_collect(ir, b, list, &count))
        return bw_ir_binary(ir, BW_OP_AND, a, b);
    for (uint32_t i = 1; i < count; i++) { /* by age: one form per set */
        bw_node moved = list[i];
        uint32_t at = i;
        for (; at > 0 && list[at - 1] > moved; at--)
            list[at] = list[at - 1];
        list[at] = moved;
    }
    bw_node built = list[0];
    for (uint32_t i = 1; i < count; i++)
        built = bw_ir_binary(ir, BW_OP_AND, built, list[i]);
    return built;
}

bw_node bw_sym_not(struct bw_ir *ir, bw_node x)
{
    if (bw_ir_op(ir, x) == BW_OP_LESS && bw_ir_dtype(ir, bw_ir_source(ir, x, 0)) == BW_I64) {
        int64_t min, max;
        bw_node a = bw_ir_source(ir, x, 0), b = bw_ir_source(ir, x, 1);
        bw_ir_bounds(ir, a, &min, &max);
        if (max < SAFE) /* not a < b is b < a + 1 */
            return bw_sym_less(ir, b, bw_sym_add(ir, a, bw_sym_const(ir, 1)));
    }
    return bw_ir_unary(ir, BW_OP_NOT, x);
}

/* Known not to wrap: the bounds are tighter than the type's, and u64 is never claimed. */
static bool bounded(const struct bw_ir *ir, bw_node node)
{
    enum bw_dtype dtype = bw_ir_dtype(ir, node);
    int64_t min, max;
    if (!bw_dtype_is_int(dtype) || dtype == BW_U64)
        return false;
    bw_ir_bounds(ir, node, &min, &max);
    return min > bw_dtype_int_min(dtype) && max < bw_dtype_int_max(dtype);
}

static bw_node cast_to_index(struct bw_ir *ir, bw_node x)
{
    enum bw_op op = bw_ir_op(ir, x);
    int64_t min, max;
    if (op == BW_OP_CAST && bw_ir_dtype(ir, bw_ir_source(ir, x, 0)) == BW_I64) {
        bw_ir_bounds(ir, bw_ir_source(ir, x, 0), &min, &max);
        if (bw_dtype_is_int(bw_ir_dtype(ir, x)) && bw_ir_dtype(ir, x) != BW_U64 &&
            min >= bw_dtype_int_min(bw_ir_dtype(ir, x)) && max <= bw_dtype_int_max(bw_ir_dtype(ir, x)))
            return bw_ir_source(ir, x, 0);
    }
    bool arithmetic = op == BW_OP_ADD || op == BW_OP_SUB || op == BW_OP_MUL || op == BW_OP_FLOOR_DIV ||
                      op == BW_OP_FLOOR_MOD || op == BW_OP_MIN || op == BW_OP_MAX;
    if (!arithmetic || !bounded(ir, x) || !bounded(ir, bw_ir_source(ir, x, 0)) ||
        !bounded(ir, bw_ir_source(ir, x, 1)))
        return bw_ir_cast(ir, BW_I64, x);
    bw_node a = bw_sym_cast(ir, BW_I64, bw_ir_source(ir, x, 0));
    bw_node b = bw_sym_cast(ir, BW_I64, bw_ir_source(ir, x, 1));
    return bw_sym_binary(ir, op, a, b);
}

bw_node bw_sym_cast(struct bw_ir *ir, enum bw_dtype dtype, bw_node x)
{
    if (!x || bw_ir_dtype(ir, x) == dtype)
        return x;
    if (dtype == BW_I64 && bw_dtype_is_int(bw_ir_dtype(ir, x)))
        return cast_to_index(ir, x);
    return bw_ir_cast(ir, dtype, x);
}

static bw_node sym_index(struct bw_ir *ir, enum bw_op op, bw_node a, bw_node b)
{
    int64_t value, a_min, a_max, b_min, b_max;
    bool by_const = bw_ir_const_value_int(ir, b, &value);
    bw_ir_bounds(ir, a, &a_min, &a_max);
    bw_ir_bounds(ir, b, &b_min, &b_max);
    switch (op) {
    case BW_OP_ADD:
        return bw_sym_add(ir, a, b);
    case BW_OP_SUB: {
        struct bw_sum sum;
        bw_node whole = bw_ir_binary(ir, op, a, b);
        return whole && bw_sum_from(ir, whole, &sum) ? bw_sum_build(ir, &sum) : whole;
    }
    case BW_OP_MUL:
        if (by_const)
            return bw_sym_mul(ir, a, value);
        return bw_ir_const_value_int(ir, a, &value) ? bw_sym_mul(ir, b, value) : bw_ir_binary(ir, op, a, b);
    case BW_OP_FLOOR_DIV:
        return by_const && value > 0 ? bw_sym_div(ir, a, value) : bw_ir_binary(ir, op, a, b);
    case BW_OP_FLOOR_MOD:
        return by_const && value > 0 ? bw_sym_mod(ir, a, value) : bw_ir_binary(ir, op, a, b);
    case BW_OP_MIN:
        return a_max <= b_min ? a : b_max <= a_min ? b : bw_ir_binary(ir, op, a, b);
    case BW_OP_MAX:
        return a_min >= b_max ? a : b_min >= a_max ? b : bw_ir_binary(ir, op, a, b);
    case BW_OP_LESS:
        return bw_sym_less(ir, a, b);
    case BW_OP_EQUAL:
    case BW_OP_NOT_EQUAL:
        return sym_equal(ir, op, a, b);
    default:
        return bw_ir_binary(ir, op, a, b);
    }
}

bw_node bw_sym_binary(struct bw_ir *ir, enum bw_op op, bw_node a, bw_node b)
{
    if (!a || !b)
        return 0;
    enum bw_dtype dtype = bw_ir_dtype(ir, a);
    if (dtype == BW_I64 && bw_ir_dtype(ir, b) == BW_I64)
        return sym_index(ir, op, a, b);
    if (op == BW_OP_AND && dtype == BW_BOOL)
        return bw_sym_and(ir, a, b);
    bool compare = op == BW_OP_LESS || op == BW_OP_EQUAL || op == BW_OP_NOT_EQUAL;
    if (compare && bw_dtype_is_int(dtype) && bounded(ir, a) && bounded(ir, b))
        return sym_index(ir, op, bw_sym_cast(ir, BW_I64, a), bw_sym_cast(ir, BW_I64, b));
    return bw_ir_binary(ir, op, a, b);
}
