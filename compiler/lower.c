/* Launch dimensions, order of index sums, width of index arithmetic: see lower.h. */
#include "compiler/lower.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "compiler/kernel.h"
#include "compiler/rewrite.h"
#include "compiler/symbolic.h"

enum {
    GROUPS_Y_MAX = 65535, /* hardware takes 2^32 - 1 in x, but y and z are 16-bit on several families */
};

static bool is_kind(const struct bw_ir *ir, bw_node range, enum bw_range_kind kind)
{
    return bw_ir_range_kind(ir, range) == kind;
}

/* range[i] = flat / (product of later sizes) % size[i], for the ranges of that kind between first and end. */
static void unflatten(struct bw_ir *ir, const struct bw_kernel_ranges *ranges, const uint32_t *which,
                      uint32_t count, bw_node flat, bw_node *to)
{
    int64_t stride = 1;
    for (uint32_t i = count; i-- > 0;) {
        int64_t size = ranges->sizes[which[i]];
        bw_node at = bw_sym_div(ir, flat, stride);
        to[which[i]] = i == 0 ? at : bw_sym_mod(ir, at, size);
        stride *= size;
    }
}

static int64_t product(const struct bw_kernel_ranges *ranges, const uint32_t *which, uint32_t count)
{
    int64_t size = 1;
    for (uint32_t i = 0; i < count; i++)
        if (__builtin_mul_overflow(size, ranges->sizes[which[i]], &size))
            return INT64_MAX;
    return size;
}

/* The last GLOBAL range is x, the one before it y, all others z; when y or z would be too large, all are x.
 */
static bool place_groups(struct bw_ir *ir, const struct bw_kernel_ranges *ranges, const uint32_t *which,
                         uint32_t count, struct bw_linear *linear, bw_node *to)
{
    uint32_t ends[4] = {count, count ? count - 1 : 0, count > 1 ? count - 2 : 0, 0};
    bool fits = true;
    for (int d = 1; d < 3; d++)
        fits &= product(ranges, which + ends[d + 1], ends[d] - ends[d + 1]) <= GROUPS_Y_MAX;
    if (!fits)
        ends[1] = ends[2] = 0;
    for (int d = 0; d < 3; d++) {
        uint32_t first = ends[d + 1], length = ends[d] - first;
        int64_t size = product(ranges, which + first, length);
        if (size > UINT32_MAX)
            return false;
        linear->group_count[d] = (uint32_t)size;
        bw_node group = bw_ir_special(ir, BW_I64, (enum bw_special)(BW_SPECIAL_GROUP_X + d), size);
        unflatten(ir, ranges, which + first, length, size == 1 ? bw_sym_const(ir, 0) : group, to);
    }
    return true;
}

bw_node bw_lower_launch(struct bw_ir *ir, bw_node sink, struct bw_linear *linear)
{
    struct bw_kernel_ranges ranges;
    bw_node to[BW_KERNEL_RANGES_MAX];
    uint32_t groups[BW_KERNEL_RANGES_MAX], items[BW_KERNEL_RANGES_MAX], group_count = 0, item_count = 0;
    if (!sink || !bw_kernel_ranges(ir, sink, &ranges))
        return bw_ir_fail(ir, -E2BIG, "a kernel of more than %d ranges", BW_KERNEL_RANGES_MAX);
    for (uint32_t i = 0; i < ranges.count; i++) {
        to[i] = ranges.list[i];
        if (is_kind(ir, ranges.list[i], BW_RANGE_GLOBAL))
            groups[group_count++] = i;
        if (is_kind(ir, ranges.list[i], BW_RANGE_ITEM) || is_kind(ir, ranges.list[i], BW_RANGE_GROUP_REDUCE))
            items[item_count++] = i;
    }
    if (!place_groups(ir, &ranges, groups, group_count, linear, to))
        return bw_ir_fail(ir, -E2BIG, "more than 2^32 workgroups");
    int64_t item_size = product(&ranges, items, item_count);
    assert(item_size <= 1024);
    linear->item_count = (uint32_t)item_size;
    unflatten(ir, &ranges, items, item_count, bw_ir_special(ir, BW_I64, BW_SPECIAL_ITEM, item_size), to);
    return bw_ir_substitute(ir, sink, ranges.list, to, ranges.count);
}

/* When a node's value changes: bit 63 set: differs between items; else or besides: 1 + the highest number of
 * a range in it. */
struct change {
    bool varies;
    uint32_t range;
};

struct ordering {
    struct change *changes; /* by node of the ir, grown as nodes are made */
    uint32_t count, capacity;
};

static int changes_update(struct ordering *o, const struct bw_ir *ir)
{
    uint32_t wanted = bw_ir_count(ir);
    if (wanted > o->capacity) {
        struct change *grown = realloc(o->changes, 2 * (size_t)wanted * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        o->changes = grown;
        o->capacity = 2 * wanted;
    }
    for (; o->count < wanted; o->count++) {
        struct change change = {0};
        bw_node node = o->count;
        enum bw_op op = node ? bw_ir_op(ir, node) : BW_OP_NONE;
        for (uint32_t i = 0; node && i < bw_ir_source_count(ir, node); i++) {
            struct change source = o->changes[bw_ir_source(ir, node, i)];
            change.varies |= source.varies;
            change.range = change.range > source.range ? change.range : source.range;
        }
        if (op == BW_OP_RANGE)
            change.range = bw_ir_range_number(ir, node) + 1;
        if (op == BW_OP_SPECIAL)
            change.varies = bw_ir_special_which(ir, node) == BW_SPECIAL_ITEM;
        if (bw_ir_is_group_fold(ir, node))
            change.varies = false;
        o->changes[node] = change;
    }
    return 0;
}

static uint64_t term_rank(const struct ordering *o, bw_node atom)
{
    struct change change = o->changes[atom];
    return (uint64_t)change.varies << 32 | change.range;
}

/* uniform terms from the outermost loop to the innermost, then terms that differ between items, then the
 * constant. */
static bw_node order_sum(struct ordering *o, struct bw_ir *ir, bw_node index)
{
    struct bw_sum sum;
    if (!bw_sum_from(ir, index, &sum) || sum.count < 2)
        return index;
    for (uint32_t i = 1; i < sum.count; i++) {
        struct bw_sum_term term = sum.terms[i];
        uint32_t at = i;
        for (; at > 0 && term_rank(o, sum.terms[at - 1].atom) > term_rank(o, term.atom); at--)
            sum.terms[at] = sum.terms[at - 1];
        sum.terms[at] = term;
    }
    bw_node parts[2] = {0, 0}; /* uniform, varying */
    for (uint32_t i = 0; i < sum.count; i++) {
        bw_node *part = &parts[o->changes[sum.terms[i].atom].varies];
        bw_node term = bw_ir_binary(ir, BW_OP_MUL, sum.terms[i].atom, bw_sym_const(ir, sum.terms[i].factor));
        *part = *part ? bw_ir_binary(ir, BW_OP_ADD, *part, term) : term;
    }
    bw_node both = parts[0] && parts[1] ? bw_ir_binary(ir, BW_OP_ADD, parts[0], parts[1])
                   : parts[0]           ? parts[0]
                                        : parts[1];
    return bw_ir_binary(ir, BW_OP_ADD, both, bw_sym_const(ir, sum.constant));
}

static bw_node order_node(void *user, struct bw_ir *to, const struct bw_ir *from, bw_node node,
                          const bw_node *sources)
{
    struct ordering *o = user;
    enum bw_op op = bw_ir_op(from, node);
    uint32_t count = bw_ir_source_count(from, node);
    bw_node changed[4];
    if (op != BW_OP_LOAD && op != BW_OP_STORE)
        return bw_ir_add(to, op, bw_ir_dtype(from, node), bw_ir_arg(from, node), sources, count);
    for (uint32_t i = 0; i < count; i++)
        changed[i] = sources[i];
    if (changes_update(o, to))
        return 0;
    if (bw_ir_dtype(to, changed[1]) == BW_I64)
        changed[1] = order_sum(o, to, changed[1]);
    return bw_ir_add(to, op, bw_ir_dtype(from, node), 0, changed, count);
}

static bool fits_i32(const struct bw_ir *ir, bw_node node)
{
    int64_t min, max;
    bw_ir_bounds(ir, node, &min, &max);
    return min >= INT32_MIN && max <= INT32_MAX;
}

static bool is_index_arithmetic(enum bw_op op)
{
    switch (op) {
    case BW_OP_ADD:
    case BW_OP_SUB:
    case BW_OP_MUL:
    case BW_OP_NEG:
    case BW_OP_FLOOR_DIV:
    case BW_OP_FLOOR_MOD:
    case BW_OP_MIN:
    case BW_OP_MAX:
        return true;
    default:
        return false;
    }
}

/* `sources` are the narrowed ones. What was i64 and fits in i32 is i32 afterwards; users that need the old
 * width get a cast. */
static bw_node narrow_node(void *user, struct bw_ir *to, const struct bw_ir *from, bw_node node,
                           const bw_node *sources)
{
    enum bw_op op = bw_ir_op(from, node);
    enum bw_dtype dtype = bw_ir_dtype(from, node);
    uint32_t count = bw_ir_source_count(from, node);
    bw_node widened[BW_RANK_MAX + 1];
    if (op == BW_OP_SINK)
        return bw_ir_add(to, op, dtype, 0, sources, count);
    bool fits = dtype == BW_I64 && fits_i32(from, node), all_narrow = true;
    if (dtype == BW_I64 && fits && (op == BW_OP_CONST || op == BW_OP_SPECIAL))
        return bw_ir_add(to, op, BW_I32, bw_ir_arg(from, node), NULL, 0);
    if (op == BW_OP_RANGE)
        return bw_ir_add(to, op, fits ? BW_I32 : BW_I64, bw_ir_arg(from, node), sources, count);
    for (uint32_t i = 0; i < count; i++)
        all_narrow &=
            bw_ir_dtype(from, bw_ir_source(from, node, i)) != BW_I64 || bw_ir_dtype(to, sources[i]) == BW_I32;
    bool compare = op == BW_OP_LESS || op == BW_OP_EQUAL || op == BW_OP_NOT_EQUAL;
    bool takes_narrow = all_narrow && ((fits && is_index_arithmetic(op)) || compare || op == BW_OP_CAST);
    for (uint32_t i = 0; i < count; i++) {
        bool was_wide = bw_ir_dtype(from, bw_ir_source(from, node, i)) == BW_I64;
        bool any_width = takes_narrow || (op == BW_OP_FOLD && i > 0) ||
                         ((op == BW_OP_LOAD || op == BW_OP_STORE) && i == 1);
        widened[i] = was_wide && !any_width ? bw_ir_cast(to, BW_I64, sources[i]) : sources[i];
    }
    if (op == BW_OP_CAST)
        return bw_ir_cast(to, dtype, widened[0]);
    if (takes_narrow && !compare)
        return bw_ir_add(to, op, BW_I32, 0, widened, count);
    bw_node wide = bw_ir_add(to, op, dtype, bw_ir_arg(from, node), widened, count);
    return fits && is_index_arithmetic(op) ? bw_ir_cast(to, BW_I32, wide) : wide;
}

bw_node bw_lower_indexes(struct bw_ir *ir, bw_node sink)
{
    struct ordering o = {0};
    if (!sink)
        return 0;
    int rc = bw_ir_rewrite(ir, ir, &sink, 1, order_node, &o);
    free(o.changes);
    if (!rc)
        rc = bw_ir_rewrite(ir, ir, &sink, 1, narrow_node, NULL);
    return rc ? 0 : sink;
}
