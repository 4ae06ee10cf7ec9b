/* Goal: no rule of the index simplifier changes a value. Random expressions are built twice, plainly and
 * through the simplifier, and compared for every value of their ranges. */
#include <bellwire/err.h>

#include <errno.h>

#include "base/rng.h"
#include "compiler/rewrite.h"
#include "compiler/scalar.h"
#include "compiler/symbolic.h"
#include "tests/check.h"

enum { RANGES = 3, NODES = 14, ROUNDS = 4000 };

static int64_t range_sizes[RANGES];
static bw_node ranges[RANGES];

/* Value of an index expression with the ranges at these values, by a walk over all nodes up to it. */
static int64_t evaluate(const struct bw_ir *ir, bw_node root, const int64_t *at)
{
    union bw_scalar *values = calloc(root + 1, sizeof *values);
    bool *reached = bw_ir_reachable(ir, &root, 1);
    for (bw_node node = 1; node <= root; node++) {
        if (!reached[node])
            continue;
        enum bw_op op = bw_ir_op(ir, node);
        if (op == BW_OP_CONST)
            values[node].i = (int64_t)bw_ir_arg(ir, node);
        else if (op == BW_OP_RANGE)
            values[node].i = at[bw_ir_range_number(ir, node)];
        else if (op == BW_OP_CAST)
            values[node] = bw_scalar_cast(bw_ir_dtype(ir, node), bw_ir_dtype(ir, bw_ir_source(ir, node, 0)),
                                          values[bw_ir_source(ir, node, 0)]);
        else if (bw_ir_source_count(ir, node) == 1)
            values[node] = bw_scalar_unary(op, bw_ir_dtype(ir, bw_ir_source(ir, node, 0)),
                                           values[bw_ir_source(ir, node, 0)]);
        else
            values[node] =
                bw_scalar_binary(op, bw_ir_dtype(ir, bw_ir_source(ir, node, 0)),
                                 values[bw_ir_source(ir, node, 0)], values[bw_ir_source(ir, node, 1)]);
    }
    int64_t value = values[root].i;
    free(values);
    free(reached);
    return value;
}

struct pair {
    bw_node plain, simple;
};

static struct pair random_node(struct bw_ir *ir, struct bw_rng *rng, const struct pair *known, uint32_t count)
{
    static const int64_t factors[] = {2, 3, 4, 6, 8, 12, 24, 5, -1, -2, 7};
    struct pair a = known[bw_rng_below(rng, count)], b = known[bw_rng_below(rng, count)];
    int64_t factor = factors[bw_rng_below(rng, sizeof factors / sizeof factors[0])];
    int64_t divisor = factor < 0 ? 1 - factor * 2 : factor;
    bw_node f = bw_sym_const(ir, factor), d = bw_sym_const(ir, divisor);
    switch (bw_rng_below(rng, 9)) {
    case 0:
    case 1:
        return (struct pair){bw_ir_binary(ir, BW_OP_ADD, a.plain, b.plain),
                             bw_sym_binary(ir, BW_OP_ADD, a.simple, b.simple)};
    case 2:
        return (struct pair){bw_ir_binary(ir, BW_OP_SUB, a.plain, b.plain),
                             bw_sym_binary(ir, BW_OP_SUB, a.simple, b.simple)};
    case 3:
        return (struct pair){bw_ir_binary(ir, BW_OP_MUL, a.plain, f),
                             bw_sym_binary(ir, BW_OP_MUL, a.simple, f)};
    case 4:
    case 5:
        return (struct pair){bw_ir_binary(ir, BW_OP_FLOOR_DIV, a.plain, d),
                             bw_sym_binary(ir, BW_OP_FLOOR_DIV, a.simple, d)};
    case 6:
    case 7:
        return (struct pair){bw_ir_binary(ir, BW_OP_FLOOR_MOD, a.plain, d),
                             bw_sym_binary(ir, BW_OP_FLOOR_MOD, a.simple, d)};
    default:
        return (struct pair){bw_ir_binary(ir, BW_OP_ADD, a.plain, f),
                             bw_sym_binary(ir, BW_OP_ADD, a.simple, f)};
    }
}

static struct pair random_condition(struct bw_ir *ir, struct bw_rng *rng, const struct pair *known,
                                    uint32_t count)
{
    struct pair a = known[bw_rng_below(rng, count)], b = known[bw_rng_below(rng, count)];
    bw_node limit = bw_sym_const(ir, (int64_t)bw_rng_below(rng, 30) - 10);
    if (bw_rng_below(rng, 2))
        b = (struct pair){limit, limit};
    enum bw_op op = bw_rng_below(rng, 4) ? BW_OP_LESS : BW_OP_EQUAL;
    struct pair condition = {bw_ir_binary(ir, op, a.plain, b.plain),
                             bw_sym_binary(ir, op, a.simple, b.simple)};
    if (bw_rng_below(rng, 3) == 0)
        condition =
            (struct pair){bw_ir_unary(ir, BW_OP_NOT, condition.plain), bw_sym_not(ir, condition.simple)};
    return condition;
}

static bool same_everywhere(const struct bw_ir *ir, struct pair pair)
{
    int64_t at[RANGES];
    for (at[0] = 0; at[0] < range_sizes[0]; at[0]++)
        for (at[1] = 0; at[1] < range_sizes[1]; at[1]++)
            for (at[2] = 0; at[2] < range_sizes[2]; at[2]++) {
                int64_t expected = evaluate(ir, pair.plain, at), observed = evaluate(ir, pair.simple, at);
                if (observed != expected)
                    return BW_EQ(observed, expected);
            }
    return true;
}

static bool bounds_hold(const struct bw_ir *ir, bw_node node)
{
    int64_t at[RANGES], min, max;
    bw_ir_bounds(ir, node, &min, &max);
    for (at[0] = 0; at[0] < range_sizes[0]; at[0]++)
        for (at[1] = 0; at[1] < range_sizes[1]; at[1]++)
            for (at[2] = 0; at[2] < range_sizes[2]; at[2]++) {
                int64_t value = evaluate(ir, node, at);
                if (value < min || value > max)
                    return BW_TRUE(value >= min && value <= max);
            }
    return true;
}

static void rules_keep_values(void)
{
    struct bw_rng rng = {20261};
    bool ok = true;
    uint32_t simpler = 0;
    for (int round = 0; round < ROUNDS && ok; round++) {
        struct bw_ir *ir;
        struct bw_err err;
        uint64_t seed = rng.state;
        if (!BW_OK(bw_ir_create(&ir, &err), &err))
            return;
        struct pair known[RANGES + NODES], condition[2];
        for (uint32_t i = 0; i < RANGES; i++) {
            range_sizes[i] = 1 + (int64_t)bw_rng_below(&rng, i == 0 ? 24 : 7);
            ranges[i] = bw_ir_range(ir, i, BW_RANGE_LOOP, bw_sym_const(ir, range_sizes[i]));
            known[i] = (struct pair){ranges[i], ranges[i]};
        }
        for (uint32_t i = RANGES; i < RANGES + NODES; i++)
            known[i] = random_node(ir, &rng, known, i);
        for (uint32_t i = 0; i < 2; i++)
            condition[i] = random_condition(ir, &rng, known, RANGES + NODES);
        struct pair both = {bw_ir_binary(ir, BW_OP_AND, condition[0].plain, condition[1].plain),
                            bw_sym_and(ir, condition[0].simple, condition[1].simple)};
        struct pair last = known[RANGES + NODES - 1];
        simpler += last.plain != last.simple;
        ok = same_everywhere(ir, last) && same_everywhere(ir, both) && bounds_hold(ir, last.simple);
        if (!ok)
            printf("      seed %llu\n", (unsigned long long)seed);
        bw_ir_destroy(ir);
    }
    BW_TRUE(ok);
    BW_TRUE(simpler > ROUNDS / 4);
}

static struct bw_ir *ir;
static bw_node range_of(uint32_t number, int64_t size)
{
    return bw_ir_range(ir, number, BW_RANGE_LOOP, bw_sym_const(ir, size));
}

static void views_disappear(void)
{
    struct bw_err err;
    if (!BW_OK(bw_ir_create(&ir, &err), &err))
        return;
    bw_node r = range_of(0, 6), t = range_of(1, 8), u = range_of(2, 48);
    bw_node flat = bw_sym_add(ir, bw_sym_mul(ir, r, 8), t);
    BW_EQ(bw_sym_div(ir, flat, 8), r);
    BW_EQ(bw_sym_mod(ir, flat, 8), t);
    BW_EQ(bw_sym_add(ir, bw_sym_mul(ir, bw_sym_div(ir, u, 8), 8), bw_sym_mod(ir, u, 8)), u);
    /* [6,8] seen as [12,4] and back */
    bw_node high = bw_sym_div(ir, flat, 4), low = bw_sym_mod(ir, flat, 4);
    BW_EQ(bw_sym_add(ir, bw_sym_mul(ir, high, 4), low), flat);
    /* ((u / 16) % 3) * 4 + (u / 4) % 4 is u / 4 */
    bw_node three = bw_sym_add(ir, bw_sym_mul(ir, bw_sym_mod(ir, bw_sym_div(ir, u, 16), 3), 4),
                               bw_sym_mod(ir, bw_sym_div(ir, u, 4), 4));
    BW_EQ(three, bw_sym_div(ir, u, 4));
    /* r * 8 + t < 16 is r < 2 */
    BW_EQ(bw_sym_less(ir, flat, bw_sym_const(ir, 16)), bw_sym_less(ir, r, bw_sym_const(ir, 2)));
    BW_EQ(bw_sym_less(ir, flat, bw_sym_const(ir, 48)), bw_ir_const_int(ir, BW_BOOL, 1));
    bw_node narrow = bw_sym_cast(ir, BW_I32, r);
    bw_node twice = bw_ir_binary(ir, BW_OP_MUL, narrow, bw_ir_const_int(ir, BW_I32, 2));
    BW_EQ(bw_sym_cast(ir, BW_I64, twice), bw_sym_mul(ir, r, 2));
    bw_ir_destroy(ir);
}

BW_TEST_MAIN("symbolic", {"rules_keep_values", rules_keep_values}, {"views_disappear", views_disappear})
