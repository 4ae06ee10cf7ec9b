/* Printers: see print.h. */
#include "compiler/print.h"

#include <assert.h>
#include <stdlib.h>

#include "compiler/rewrite.h"

static const char *const kind_names[] = {"loop",         "global", "item",  "reduce",
                                         "group_reduce", "upcast", "unroll"};
static const char *const special_names[] = {"group.x", "group.y", "group.z", "item"};

static void print_list(struct bw_text *text, const int64_t *values, uint32_t count)
{
    bw_text_add(text, "[");
    for (uint32_t i = 0; i < count; i++)
        bw_text_add(text, "%s%lld", i ? ", " : "", (long long)values[i]);
    bw_text_add(text, "]");
}

static void print_const(struct bw_text *text, const struct bw_ir *ir, bw_node node)
{
    int64_t integer;
    double real;
    if (bw_ir_const_value_int(ir, node, &integer))
        bw_text_add(text, " %lld", (long long)integer);
    else if (bw_ir_const_value_float(ir, node, &real))
        bw_text_add(text, " %.17g", real);
}

static void print_movement(struct bw_text *text, const struct bw_ir *ir, bw_node node)
{
    uint64_t arg = bw_ir_arg(ir, node);
    uint32_t rank = bw_ir_shape(ir, bw_ir_source(ir, node, 0))->rank;
    switch (bw_ir_op(ir, node)) {
    case BW_OP_PERMUTE: {
        const struct bw_axes *axes = bw_ir_blob_data(ir, arg);
        bw_text_add(text, " (");
        for (uint32_t i = 0; i < rank; i++)
            bw_text_add(text, "%s%u", i ? ", " : "", axes->axes[i]);
        bw_text_add(text, ")");
        break;
    }
    case BW_OP_PAD:
    case BW_OP_SHRINK: {
        const struct bw_bounds *bounds = bw_ir_blob_data(ir, arg);
        bw_text_add(text, " low ");
        print_list(text, bounds->low, rank);
        bw_text_add(text, " high ");
        print_list(text, bounds->high, rank);
        break;
    }
    case BW_OP_FLIP:
        bw_text_add(text, " axes 0x%llx", (unsigned long long)arg);
        break;
    default:
        break;
    }
}

static void print_arg(struct bw_text *text, const struct bw_ir *ir, bw_node node)
{
    switch (bw_ir_op(ir, node)) {
    case BW_OP_CONST:
        print_const(text, ir, node);
        break;
    case BW_OP_BUFFER:
        bw_text_add(text, " #%u", bw_ir_buffer_number(ir, node));
        break;
    case BW_OP_INDEXES:
        bw_text_add(text, " axis %u", bw_ir_indexes_axis(ir, node));
        break;
    case BW_OP_REDUCE:
        bw_text_add(text, " %s axes 0x%x", bw_op_name(bw_ir_reduce_op(ir, node)),
                    bw_ir_reduce_axes(ir, node));
        break;
    case BW_OP_FOLD:
        bw_text_add(text, " %s", bw_op_name(bw_ir_reduce_op(ir, node)));
        break;
    case BW_OP_PARAM:
        bw_text_add(text, " %u%s", bw_ir_param_number(ir, node),
                    bw_ir_param_written(ir, node) ? " written" : "");
        break;
    case BW_OP_RANGE:
        bw_text_add(text, " %u %s", bw_ir_range_number(ir, node), kind_names[bw_ir_range_kind(ir, node)]);
        break;
    case BW_OP_SPECIAL:
        bw_text_add(text, " %s of %llu", special_names[bw_ir_special_which(ir, node)],
                    (unsigned long long)(bw_ir_arg(ir, node) >> 8));
        break;
    case BW_OP_ACCUMULATOR:
        bw_text_add(text, " %llu", (unsigned long long)bw_ir_arg(ir, node));
        break;
    case BW_OP_LOCAL: {
        const struct bw_local *local = bw_ir_blob_data(ir, bw_ir_arg(ir, node));
        bw_text_add(text, " %lld of %lld", (long long)local->number, (long long)local->elements);
        break;
    }
    case BW_OP_VARIABLE: {
        const struct bw_variable *variable = bw_ir_blob_data(ir, bw_ir_arg(ir, node));
        bw_text_add(text, " %.16s in %lld..%lld", variable->name, (long long)variable->min,
                    (long long)variable->max);
        break;
    }
    default:
        if (bw_op_class(bw_ir_op(ir, node)) == BW_OP_MOVEMENT)
            print_movement(text, ir, node);
    }
}

static void print_source(struct bw_text *text, const struct bw_ir *ir, bw_node node)
{
    if (bw_ir_op(ir, node) == BW_OP_CONST)
        print_const(text, ir, node);
    else
        bw_text_add(text, " %%%u", node);
}

void bw_print_node(struct bw_text *text, const struct bw_ir *ir, bw_node node)
{
    enum bw_dtype dtype = bw_ir_dtype(ir, node);
    const struct bw_shape *shape = bw_ir_shape(ir, node);
    if (dtype != BW_VOID)
        bw_text_add(text, "%%%u = ", node);
    bw_text_add(text, "%s", bw_op_name(bw_ir_op(ir, node)));
    if (dtype != BW_VOID)
        bw_text_add(text, " %s", bw_dtype_name(dtype));
    if (shape->rank) {
        bw_text_add(text, " ");
        print_list(text, shape->dims, shape->rank);
    }
    print_arg(text, ir, node);
    for (uint32_t i = 0; i < bw_ir_source_count(ir, node); i++)
        print_source(text, ir, bw_ir_source(ir, node, i));
    bw_text_add(text, "\n");
}

void bw_print_graph(struct bw_text *text, const struct bw_ir *ir, const bw_node *roots, uint32_t count)
{
    bool *reached = bw_ir_reachable(ir, roots, count);
    for (bw_node node = 1; reached && node < bw_ir_count(ir); node++)
        if (reached[node] && !(bw_ir_op(ir, node) == BW_OP_CONST && !bw_ir_shape(ir, node)->rank))
            bw_print_node(text, ir, node);
    free(reached);
}

void bw_print_linear(struct bw_text *text, const struct bw_linear *linear)
{
    const struct bw_ir *ir = linear->ir;
    int depth = 0;
    bw_text_add(text, "groups %u x %u x %u of %u\n", linear->group_count[0], linear->group_count[1],
                linear->group_count[2], linear->item_count);
    for (size_t i = 0; i < linear->list.count; i++) {
        bw_node node = linear->list.data[i];
        enum bw_op op = bw_ir_op(ir, node);
        if (op == BW_OP_CONST)
            continue;
        depth -= op == BW_OP_END_LOOP;
        bw_text_add(text, "%*s", 2 * depth, "");
        if (op == BW_OP_LOOP) {
            bw_node range = bw_ir_source(ir, node, 0);
            bw_text_add(text, "LOOP %%%u = %s RANGE", range, bw_dtype_name(bw_ir_dtype(ir, range)));
            print_arg(text, ir, range);
            print_source(text, ir, bw_ir_source(ir, range, 0));
            bw_text_add(text, "\n");
        } else
            bw_print_node(text, ir, node);
        depth += op == BW_OP_LOOP;
    }
}
