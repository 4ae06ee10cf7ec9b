/* The IR: one node type from tensor graph to linear code.
 *
 * A node is (op, dtype, arg, sources); nodes are hash-consed, so identity is equality and common
 * subexpressions are one node. A bw_node is an index into its struct bw_ir; 0 means "none / failed". Shape,
 * integer bounds and structural key are derived.
 *
 * Stages, each checked by bw_ir_verify (compiler/verify.h):
 *   tensor   CONST BUFFER INDEXES, movement, GATHER, elementwise, REDUCE, CONTIGUOUS        nodes have shapes
 *   kernel   PARAM RANGE VARIABLE LOAD STORE FOLD, elementwise on scalars, SINK             every value is a
 * scalar of the ranges linear   the same, in a list, with LOOP/END_LOOP, ACCUMULATOR/ASSIGN, SPECIAL, BARRIER
 * what interpreters and code generators read
 *
 * Errors: an ill-formed node makes bw_ir_add return 0 and stores the first error in the ir (sticky); sources
 * of 0 are passed through silently, so that builders need no check per call. Not thread safe; one ir per
 * compile. */
#ifndef BW_COMPILER_IR_H
#define BW_COMPILER_IR_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/dtype.h>
#include <bellwire/err.h>

typedef uint32_t bw_node;

enum {
    BW_RANK_MAX = 16, /* 3-d convolution as a sliding window needs 11 */
    BW_IR_SOURCES_MAX = 65535,
};

struct bw_shape {
    uint32_t rank;
    int64_t dims[BW_RANK_MAX];
};

/* X(name, class): see enum bw_op_class. What each means stands in the comments below the list. */
#define BW_OPS(X)                                                                                           \
    X(NONE, LEAF)                                                                                           \
    X(CONST, LEAF)                                                                                          \
    X(BUFFER, LEAF) X(INDEXES, LEAF) X(RESHAPE, MOVEMENT) X(PERMUTE, MOVEMENT) X(EXPAND, MOVEMENT)          \
        X(PAD, MOVEMENT) X(SHRINK, MOVEMENT) X(FLIP, MOVEMENT) X(GATHER, TENSOR) X(REDUCE, TENSOR)          \
            X(CONTIGUOUS, TENSOR) X(CAST, UNARY) X(BITCAST, UNARY) X(NEG, UNARY) X(NOT, UNARY)              \
                X(RECIPROCAL, UNARY) X(SQRT, UNARY) X(EXP2, UNARY) X(LOG2, UNARY) X(SIN, UNARY)             \
                    X(TRUNC, UNARY) X(FLOOR, UNARY) X(CEIL, UNARY) X(ROUND_EVEN, UNARY) X(ABS, UNARY)       \
                        X(ADD, BINARY) X(SUB, BINARY) X(MUL, BINARY) X(DIV, BINARY) X(FLOOR_DIV, BINARY)    \
                            X(FLOOR_MOD, BINARY) X(TRUNC_MOD, BINARY) X(MAX, BINARY) X(MIN, BINARY)         \
                                X(AND, BINARY) X(OR, BINARY) X(XOR, BINARY) X(SHL, BINARY) X(SHR, BINARY)   \
                                    X(LESS, BINARY) X(EQUAL, BINARY) X(NOT_EQUAL, BINARY) X(WHERE, TERNARY) \
                                        X(MULTIPLY_ADD, TERNARY) X(PARAM, KERNEL) X(RANGE, KERNEL)          \
                                            X(VARIABLE, KERNEL) X(LOAD, KERNEL) X(STORE, KERNEL)            \
                                                X(FOLD, KERNEL) X(LOCAL, KERNEL) X(SINK, KERNEL)            \
                                                    X(SPECIAL, LINEAR) X(LOOP, LINEAR) X(END_LOOP, LINEAR)  \
                                                        X(ACCUMULATOR, LINEAR) X(ASSIGN, LINEAR)            \
                                                            X(BARRIER, LINEAR) X(IF, LINEAR)                \
                                                                X(END_IF, LINEAR)

/* Sources and arg, per op (shape rules are for the tensor stage; at the kernel stage everything elementwise
 * is scalar):
 *
 * CONST        arg: int64 bits for ints and bool, the bits of the value as a double for floats. Rank 0;
 * EXPAND makes more of it. BUFFER       arg: bw_ir_buffer_arg(number, shape). Contiguous storage of that
 * shape, row-major. INDEXES      arg: blob {shape, axis}. Element = its index along axis. Integer dtype.
 * RESHAPE      (x) arg: blob shape; same number of elements.
 * PERMUTE      (x) arg: blob struct bw_axes: output axis i is input axis axes[i].
 * EXPAND       (x) arg: blob shape, same rank; input dims are equal or 1.
 * PAD          (x, value) arg: blob struct bw_bounds: low[i]/high[i] elements added (>= 0); value is a rank-0
 * node of x's dtype. SHRINK       (x) arg: blob struct bw_bounds: keeps [low, high) of each axis. FLIP (x)
 * arg: bit mask of axes. GATHER       (data, index_0 .. index_{rank(data)-1}): out[p] = data[index_0[p],
 * ...]; all indexes have the output's shape and an integer dtype; indexes are in bounds by construction
 * (builders clamp or wrap). REDUCE       (x) arg: bw_ir_reduce_arg(op, axes mask); op is ADD, MUL, MAX, MIN,
 * AND, OR, XOR. Reduced axes become 1. Order of floating-point accumulation is the ascending index order of
 * the tensor evaluator; code may reassociate. CONTIGUOUS   (x): must be stored. CAST         (x): C
 * conversion semantics, except float to int saturates (NaN gives 0) and anything to bool is x != 0. BITCAST
 * (x): same element size. NOT          logical on bool, bitwise on ints. ROUND_EVEN   to nearest, ties to
 * even.   SIN in radians. DIV          floats: IEEE; ints: truncating, by zero gives 0.  FLOOR_DIV/FLOOR_MOD:
 * ints, sign of divisor; by zero gives 0. TRUNC_MOD    ints: C's %; floats: fmod. MAX/MIN      floats: NaN if
 * either is NaN.  SHL/SHR: ints; SHR is arithmetic on signed; a shift >= width gives 0 (or the sign).
 * LESS/EQUAL/NOT_EQUAL give bool, operands of one dtype. NaN compares unequal.
 * WHERE        (condition bool, a, b).   MULTIPLY_ADD (a, b, c): a * b + c, fused where the target fuses.
 *
 * PARAM        arg: bw_ir_param_arg(number, written): pointer to dtype elements.
 * RANGE        (size) arg: bw_ir_range_arg(number, kind). dtype BW_I64; values 0 .. size-1; size is a CONST
 * (or VARIABLE). VARIABLE     arg: blob {name, min, max}. A replay-time integer, BW_I64. LOAD         (param,
 * index [, gate, alternative]): alternative where gate is false; memory is not touched then. STORE (param,
 * index, value [, gate]), dtype BW_VOID. FOLD         (value, range...) arg: reduce op. Value folded over the
 * ranges. LOCAL        arg: {number, elements}: workgroup-shared array of dtype. SINK         (store...): a
 * kernel. SPECIAL      arg: {which: group 0..2, item 0..2, core; size}.  LOOP/END_LOOP (range). ACCUMULATOR
 * (initial). ASSIGN (accumulator, value). IF (gate), END_IF, BARRIER. */
enum bw_op {
#define X(name, op_class) BW_OP_##name,
    BW_OPS(X)
#undef X
        BW_OP_COUNT
};

enum bw_op_class {
    BW_OP_LEAF,
    BW_OP_MOVEMENT,
    BW_OP_TENSOR,
    BW_OP_UNARY,
    BW_OP_BINARY,
    BW_OP_TERNARY,
    BW_OP_KERNEL,
    BW_OP_LINEAR,
};

enum bw_range_kind {
    BW_RANGE_LOOP,   /* not assigned yet, or a plain loop over output elements */
    BW_RANGE_GLOBAL, /* workgroup id / split over workers */
    BW_RANGE_ITEM,   /* work-item id within the group */
    BW_RANGE_REDUCE,
    BW_RANGE_GROUP_REDUCE, /* work-items that share a reduction through LOCAL memory */
    BW_RANGE_UPCAST,       /* expanded into separate values (register tile, vectors) */
    BW_RANGE_UNROLL,       /* reduce range that is expanded */
};

struct bw_axes {
    uint32_t axes[BW_RANK_MAX];
};
struct bw_bounds {
    int64_t low[BW_RANK_MAX], high[BW_RANK_MAX];
};
struct bw_variable {
    char name[16];
    int64_t min, max;
};
struct bw_local { /* blob of LOCAL */
    int64_t number, elements;
};

struct bw_ir;

int bw_ir_create(struct bw_ir **ir, struct bw_err *err);
void bw_ir_destroy(struct bw_ir *ir);
/* The first error of any builder call, 0 when none. */
int bw_ir_error(const struct bw_ir *ir, struct bw_err *err);
/* Records an error (the first wins) and returns 0, for builders. */
bw_node bw_ir_fail(struct bw_ir *ir, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
uint32_t bw_ir_count(const struct bw_ir *ir); /* nodes are 1 .. count-1, sources before users */

/* The node with these parts, made if new. Any source 0 gives 0. */
bw_node bw_ir_add(struct bw_ir *ir, enum bw_op op, enum bw_dtype dtype, uint64_t arg, const bw_node *sources,
                  uint32_t source_count);

enum bw_op bw_ir_op(const struct bw_ir *ir, bw_node node);
enum bw_dtype bw_ir_dtype(const struct bw_ir *ir, bw_node node);
uint64_t bw_ir_arg(const struct bw_ir *ir, bw_node node);
uint32_t bw_ir_source_count(const struct bw_ir *ir, bw_node node);
bw_node bw_ir_source(const struct bw_ir *ir, bw_node node, uint32_t index);
const bw_node *bw_ir_sources(const struct bw_ir *ir, bw_node node); /* valid until the next bw_ir_add */
const struct bw_shape *bw_ir_shape(const struct bw_ir *ir,
                                   bw_node node); /* interned, valid as long as ir; rank 0 for scalars */
int64_t bw_ir_elements(const struct bw_ir *ir, bw_node node);
enum bw_op_class bw_op_class(enum bw_op op);
const char *bw_op_name(enum bw_op op);
static inline bool bw_op_is_elementwise(enum bw_op op)
{
    return op >= BW_OP_CAST && op <= BW_OP_MULTIPLY_ADD;
}

/* Interned bytes, equal content = equal id; used as arg. */
uint64_t bw_ir_blob(struct bw_ir *ir, const void *data, uint32_t size_bytes);
const void *bw_ir_blob_data(const struct bw_ir *ir, uint64_t blob);

/* Builders. Dtypes and shapes are checked; elementwise sources must have one shape (broadcast first) and, but
 * for WHERE's condition and shifts' counts, one dtype. Constants are folded and identities removed on the way
 * (x+0, x*1, where(true, ...)); NaN and signed zero are respected. */
bw_node bw_ir_const_int(struct bw_ir *ir, enum bw_dtype dtype, int64_t value);
bw_node bw_ir_const_float(struct bw_ir *ir, enum bw_dtype dtype, double value); /* rounded to dtype */
bw_node bw_ir_buffer(struct bw_ir *ir, enum bw_dtype dtype, uint32_t number, const struct bw_shape *shape);
uint32_t bw_ir_buffer_number(const struct bw_ir *ir, bw_node buffer);
bw_node bw_ir_indexes(struct bw_ir *ir, enum bw_dtype dtype, const struct bw_shape *shape, uint32_t axis);
uint32_t bw_ir_indexes_axis(const struct bw_ir *ir, bw_node indexes);
bw_node bw_ir_unary(struct bw_ir *ir, enum bw_op op, bw_node x);
bw_node bw_ir_binary(struct bw_ir *ir, enum bw_op op, bw_node a, bw_node b);
bw_node bw_ir_ternary(struct bw_ir *ir, enum bw_op op, bw_node a, bw_node b, bw_node c);
bw_node bw_ir_cast(struct bw_ir *ir, enum bw_dtype dtype, bw_node x);
bw_node bw_ir_bitcast(struct bw_ir *ir, enum bw_dtype dtype, bw_node x);
bw_node bw_ir_reshape(struct bw_ir *ir, bw_node x, const struct bw_shape *shape);
bw_node bw_ir_permute(struct bw_ir *ir, bw_node x, const uint32_t *axes);
bw_node bw_ir_expand(struct bw_ir *ir, bw_node x, const struct bw_shape *shape);
bw_node bw_ir_pad(struct bw_ir *ir, bw_node x, bw_node value, const struct bw_bounds *bounds);
bw_node bw_ir_shrink(struct bw_ir *ir, bw_node x, const struct bw_bounds *bounds);
bw_node bw_ir_flip(struct bw_ir *ir, bw_node x, uint32_t axes_mask);
bw_node bw_ir_gather(struct bw_ir *ir, bw_node data, const bw_node *indexes);
bw_node bw_ir_reduce(struct bw_ir *ir, enum bw_op op, bw_node x, uint32_t axes_mask);
bw_node bw_ir_contiguous(struct bw_ir *ir, bw_node x);

bw_node bw_ir_param(struct bw_ir *ir, enum bw_dtype dtype, uint32_t number, bool written);
bw_node bw_ir_range(struct bw_ir *ir, uint32_t number, enum bw_range_kind kind, bw_node size);
bw_node bw_ir_variable(struct bw_ir *ir, const char *name, int64_t min, int64_t max);
bw_node bw_ir_load(struct bw_ir *ir, bw_node param, bw_node index, bw_node gate,
                   bw_node alternative); /* gate 0: none */
bw_node bw_ir_store(struct bw_ir *ir, bw_node param, bw_node index, bw_node value, bw_node gate);
bw_node bw_ir_fold(struct bw_ir *ir, enum bw_op op, bw_node value, const bw_node *ranges,
                   uint32_t range_count);

/* Fields of packed args. */
enum bw_op bw_ir_reduce_op(const struct bw_ir *ir, bw_node reduce_or_fold);
uint32_t bw_ir_reduce_axes(const struct bw_ir *ir, bw_node reduce);
uint32_t bw_ir_param_number(const struct bw_ir *ir, bw_node param);
bool bw_ir_param_written(const struct bw_ir *ir, bw_node param);
uint32_t bw_ir_range_number(const struct bw_ir *ir, bw_node range);
enum bw_range_kind bw_ir_range_kind(const struct bw_ir *ir, bw_node range);
bool bw_ir_const_value_int(const struct bw_ir *ir, bw_node node,
                           int64_t *value); /* false when not an int or bool CONST */
bool bw_ir_const_value_float(const struct bw_ir *ir, bw_node node,
                             double *value); /* false when not a float CONST */
/* The value that starts a reduction: 0, 1, lowest, highest, ... of dtype. */
bw_node bw_ir_reduce_identity(struct bw_ir *ir, enum bw_op op, enum bw_dtype dtype);

/* Inclusive bounds of an integer or bool scalar or tensor node, saturating; the dtype's own bounds when
 * nothing is known. */
void bw_ir_bounds(const struct bw_ir *ir, bw_node node, int64_t *min, int64_t *max);

/* A 128-bit structural key, stable over processes and runs: equal keys, equal meaning. */
struct bw_key {
    uint64_t words[2];
};
struct bw_key bw_ir_key(struct bw_ir *ir, bw_node node);

#endif
