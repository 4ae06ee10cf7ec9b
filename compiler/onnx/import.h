/* Importing: ONNX nodes become tensors, one op function each. To add an op: write `static int my_op(struct
 * bw_onnx_call *c)` in the ops_*.c file of its kind and a row {"MyOp", first opset, .function = my_op} in the
 * table at its end. An op function reads inputs and attributes with the helpers below, builds tensors, and
 * ends with `return bw_onnx_out(c, 0, y)`.
 *
 * An import goes through the graph once, for inputs of known shapes. What depends on no input is computed at
 * once (folded). Where an op needs the VALUES of a tensor (a shape, a condition, the count of non-zero
 * elements):
 *   - a folded value is there already;
 *   - a small model input is read, and the import holds for inputs of these values only ("specialised");
 *   - else everything that later nodes still need is computed now, on the device, and the import goes on with
 * the results as new inputs ("realised"); such an import cannot be kept for the next run. */
#ifndef BW_COMPILER_ONNX_IMPORT_H
#define BW_COMPILER_ONNX_IMPORT_H

#include <bellwire/model.h>

#include "base/rng.h"
#include "compiler/onnx/proto.h"
#include "compiler/tensor_graph.h"

enum {
    BW_ONNX_FOLD_ELEMENTS_MAX =
        1 << 16, /* larger constants stay expressions: weights that are only moved cost nothing so */
    BW_ONNX_FOLD_WORK_MAX = 1 << 26,   /* elements computed to fold one value */
    BW_ONNX_DECIDE_WORK_MAX = 1 << 28, /* the same for one decision: a shape that takes longer is no shape */
    BW_ONNX_SPECIALIZE_ELEMENTS_MAX = 256, /* of an input whose values may be part of what a plan is for */
    BW_ONNX_SESSION_BYTES_MAX = 1 << 30,   /* tables, lists and decided values of one import */
    BW_ONNX_IR_NODES_MAX = 1 << 23,        /* of the graph that an import makes: half a gigabyte */
    BW_ONNX_SIZE_MAX_LOG2 =
        BW_ONNX_DIM_MAX_LOG2,    /* no axis is longer: products with small factors stay within 64 bits */
    BW_ONNX_CALL_DEPTH_MAX = 64, /* subgraphs and functions within each other, against recursive functions */
    BW_ONNX_NODES_MAX = 1 << 20, /* nodes of one import, iterations of loops included, against endless ones */
};

/* A value during import. Lives as long as the session. */
struct bw_onnx_value {
    enum bw_value_kind kind;
    enum bw_dtype dtype; /* a storage type's tensor has the type that carries it */
    uint32_t rank;
    int64_t dims[BW_TENSOR_RANK_MAX];
    int64_t elements;
    bw_tensor tensor; /* arrays; id 0: made from host when asked for */
    const void *host; /* elements if they are known now (strings: struct bw_bytes[]); never NULL then */
    bool fixed;       /* host does not change from run to run */
    bool mapped;      /* host lives as long as the model */
    uint32_t input;   /* 1 + index among the session's inputs, 0 when it is none */
    struct bw_onnx_value **items;
    uint32_t item_count;
    uint32_t nesting; /* sequences: 1 more than their items', at most BW_ONNX_NESTING_MAX */
};

struct bw_onnx_session_input {
    struct bw_onnx_value *value;
    const void *data;
    uint32_t model_input; /* UINT32_MAX: realised during the import */
    const bool *sources;  /* of such a one: by model input, what it was computed from; NULL: not known */
    bool specialized;
};

/* Values by name, inside one graph. */
struct bw_onnx_scope {
    struct bw_onnx_scope *outer;  /* NULL in the main graph and in functions */
    struct bw_onnx_scope *caller; /* for liveness: whoever runs this scope */
    const struct bw_onnx_graph *graph;
    uint32_t position;    /* of the node that is being imported */
    struct bw_map values; /* symbol -> struct bw_onnx_value * */
};

/* The function that is being imported, for attributes that refer to its own. */
struct bw_onnx_frame {
    const struct bw_onnx_frame *outer;
    const struct bw_onnx_node *node; /* the call */
    const struct bw_onnx_function *function;
};

/* What indexes may be: element i of them lies below sizes[i % period]. */
struct bw_onnx_limits {
    uint32_t period;
    int64_t sizes[BW_TENSOR_RANK_MAX];
    bool from_end; /* negative ones count from the end */
    bool has_exempt;
    int64_t exempt; /* a value that stands for none */
};

/* An input of the model that holds indexes, to be looked at in each run. */
struct bw_onnx_index_check {
    const struct bw_onnx_node *node;
    int64_t opset;
    uint32_t input, model_input; /* of the node; of the model */
    struct bw_onnx_limits limits;
};

struct bw_onnx_session {
    struct bw_onnx_model *proto;
    struct bw_tensor_graph *graph;
    /* Computes tensors with the inputs as they are now; data from malloc. */
    int (*run)(struct bw_onnx_session *session, const bw_tensor *outputs, uint32_t count, void **data,
               struct bw_err *err);
    /* Elements of an initializer or attribute tensor that live as long as the model. */
    int (*tensor_data)(void *user, struct bw_onnx_tensor *tensor, const void **data, struct bw_err *err);
    /* Such elements as a range of a file where they are better read from that, else NULL. */
    struct bw_buffer *(*tensor_range)(void *user, const void *data, uint64_t size_bytes);
    void *user;
    bool may_realize; /* else -ENOTSUP names the node that would have to */
    /* By model input, the caller's: set where its values decided what is computed, or were refused. */
    bool *decided;
    uint32_t model_input_count;
    struct bw_arena arena;
    BW_VEC(void *) owned; /* host data, freed with the session */
    BW_VEC(struct bw_onnx_session_input) inputs;
    BW_VEC(struct bw_onnx_value *) pinned; /* values that op functions hold across subgraphs */
    BW_VEC(struct bw_onnx_index_check) index_checks;
    struct bw_onnx_scope *scope;
    const struct bw_onnx_frame *frame;
    const struct bw_onnx_opsets *opsets;
    bool dynamic;  /* something was realised, or random: not for keeping */
    bool reported; /* err names the node already */
    uint32_t depth;
    uint64_t nodes;
    struct bw_rng *rng;
    struct bw_err *err;
};

/* ---- session.c ---- */
int bw_onnx_session_start(struct bw_onnx_session *session, struct bw_err *err);
void bw_onnx_session_finish(
    struct bw_onnx_session *session); /* the graph included, unless taken (set to NULL) */
/* Adds a model input: its value for the main graph. */
int bw_onnx_session_input(struct bw_onnx_session *session, const struct bw_value *given, uint32_t model_input,
                          struct bw_onnx_value **value);
/* Imports the main graph: inputs by graph input, outputs by graph output. */
int bw_onnx_session_import(struct bw_onnx_session *session, struct bw_onnx_value *const *inputs,
                           struct bw_onnx_value **outputs);
/* Fails with the node that makes an output of the main graph. */
int bw_onnx_output_fail(struct bw_onnx_session *session, uint32_t output, int code, const char *what);
/* Makes host data of all values known that are needed from here on, and of `wanted`. */
int bw_onnx_session_realize(struct bw_onnx_session *session, struct bw_onnx_value *const *wanted,
                            uint32_t count);
/* The tensor of an array value. id 0 with the error recorded when that fails. */
bw_tensor bw_onnx_tensor_of(struct bw_onnx_session *session, struct bw_onnx_value *value);
/* Fresh values. NULL with the error recorded when out of memory. */
struct bw_onnx_value *bw_onnx_value_tensor(struct bw_onnx_session *session, bw_tensor tensor);
/* The same where the tensor holds the bytes of a storage type; other dtypes are those of the tensor. */
struct bw_onnx_value *bw_onnx_value_typed(struct bw_onnx_session *session, bw_tensor tensor,
                                          enum bw_dtype dtype);
struct bw_onnx_value *bw_onnx_value_none(struct bw_onnx_session *session);
struct bw_onnx_value *bw_onnx_value_sequence(struct bw_onnx_session *session,
                                             struct bw_onnx_value *const *items, uint32_t count);
/* data: malloc, owned by the session from here on, also on failure. fixed: as in struct bw_onnx_value. */
struct bw_onnx_value *bw_onnx_value_host(struct bw_onnx_session *session, enum bw_dtype dtype, uint32_t rank,
                                         const int64_t *dims, void *data, bool fixed);
struct bw_onnx_value *bw_onnx_value_strings(struct bw_onnx_session *session, uint32_t rank,
                                            const int64_t *dims, struct bw_bytes *strings, bool fixed);
struct bw_onnx_value *bw_onnx_value_proto(struct bw_onnx_session *session, struct bw_onnx_tensor *tensor);
/* The value's elements, for a decision (specialises). */
int bw_onnx_value_decide(struct bw_onnx_session *session, struct bw_onnx_value *value);
/* Notes that the elements of this value, which are known, decided something: for the inputs that it is made
 * from. */
void bw_onnx_value_decided(struct bw_onnx_session *session, const struct bw_onnx_value *value);
/* The value's elements, as data: *dynamic is set when they change from run to run. */
int bw_onnx_value_realize(struct bw_onnx_session *session, struct bw_onnx_value *value, bool *dynamic);
/* Folds the tensor of a value that depends on no input, unless that takes long. */
int bw_onnx_value_fold(struct bw_onnx_session *session, struct bw_onnx_value *value);

/* ---- import.c ---- */
struct bw_onnx_op;
struct bw_onnx_call {
    struct bw_onnx_session *session;
    struct bw_tensor_graph *g;
    const struct bw_onnx_node *node;
    const struct bw_onnx_op *op;
    int64_t opset; /* of the node's domain */
    struct bw_onnx_value **inputs, **outputs;
    uint32_t input_count, output_count;
    int rc;       /* first error of a helper */
    bool dynamic; /* host data that were read change from run to run */
};

typedef int (*bw_onnx_op_function)(struct bw_onnx_call *c);
typedef bw_tensor (*bw_tensor_unary_builder)(struct bw_tensor_graph *g, bw_tensor x);
typedef bw_tensor (*bw_tensor_binary_builder)(struct bw_tensor_graph *g, bw_tensor a, bw_tensor b);

struct bw_onnx_op {
    const char *name;
    int64_t first_opset; /* the row with the highest one that the model's opset reaches is taken */
    bw_onnx_op_function function;
    bw_tensor_unary_builder unary; /* what `function` applies, for families of ops */
    bw_tensor_binary_builder binary;
    int64_t variant;
    const char *domain; /* NULL: the default domain */
    bool moves; /* elements as they are, from input 0 to output 0: storage types too, which others refuse */
};

struct bw_onnx_ops {
    const struct bw_onnx_op *rows;
    uint32_t count;
};
/* The tables of the ops_*.c files, one after the other; NULL past the last. ops.c */
const struct bw_onnx_ops *bw_onnx_ops_at(uint32_t index);
/* The row for an op, or NULL. *known: some row has this name. ops.c */
const struct bw_onnx_op *bw_onnx_op_find(struct bw_bytes domain, struct bw_bytes op_type, int64_t opset,
                                         bool *known);

/* Runs a graph attribute's nodes with its inputs given; outputs has room for all graph outputs. */
int bw_onnx_subgraph(struct bw_onnx_call *c, const struct bw_onnx_graph *graph,
                     struct bw_onnx_value *const *inputs, uint32_t input_count,
                     struct bw_onnx_value **outputs);
/* Keeps values alive (and current) while subgraphs run; undone by bw_onnx_unpin of the same count. */
int bw_onnx_pin(struct bw_onnx_call *c, struct bw_onnx_value *const *values, uint32_t count);
void bw_onnx_unpin(struct bw_onnx_call *c, uint32_t count);
/* The value that a name stands for where the node is, or NULL. */
struct bw_onnx_value *bw_onnx_named(struct bw_onnx_call *c, struct bw_bytes name);
/* Counts an iteration of a loop against BW_ONNX_NODES_MAX. */
int bw_onnx_iteration(struct bw_onnx_call *c);

/* ---- types.c ---- */
/* The inputs' element types against what the op takes. */
int bw_onnx_check_types(struct bw_onnx_call *c);
/* The same of an output: for types that are asked for by an attribute. */
int bw_onnx_check_output_type(struct bw_onnx_call *c, uint32_t output, enum bw_dtype dtype);
/* A value against the type that its graph declares for its name, if any; shapes: its dimensions too. */
int bw_onnx_check_declared(struct bw_onnx_call *c, const struct bw_onnx_graph *graph, bw_symbol symbol,
                           const struct bw_onnx_value *value, bool shapes);

/* ---- indexes.c ---- */
/* Refuses indexes out of range (-ERANGE) where they are known now; those that a model input brings with each
 * run are noted in the session. */
int bw_onnx_check_indexes(struct bw_onnx_call *c, uint32_t input, const struct bw_onnx_limits *limits);
int bw_onnx_check_index(struct bw_onnx_call *c, uint32_t input, int64_t size); /* -size .. size - 1 */
int bw_onnx_indexes_within(const struct bw_onnx_model *proto, const struct bw_onnx_index_check *check,
                           const struct bw_array *indexes, struct bw_err *err);

/* ---- storage.c: storage types ---- */
enum bw_onnx_power { BW_ONNX_POWER_UP, BW_ONNX_POWER_DOWN, BW_ONNX_POWER_NEAREST };
struct bw_onnx_rounding {
    bool saturate;            /* floats of 8 bits: what is out of range is the greatest number, else NaN */
    bool infinity_is_nan;     /* all the same, in types without -0 */
    enum bw_onnx_power power; /* how FLOAT8E8M0 rounds */
};
/* Bytes as numbers: floats as f32, integers as they are. */
bw_tensor bw_onnx_decode(struct bw_onnx_call *c, enum bw_dtype dtype, bw_tensor bytes);
/* Numbers as bytes: floats to nearest even, as ONNX's Cast says. */
bw_tensor bw_onnx_encode(struct bw_onnx_call *c, enum bw_dtype dtype, bw_tensor x,
                         const struct bw_onnx_rounding *rounding);

/* ---- call.c: what op functions read and write ---- */
/* Records an error that names node, op and opset. Returns code. */
int bw_onnx_fail(struct bw_onnx_call *c, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

bool bw_onnx_has(const struct bw_onnx_call *c, uint32_t input); /* given, and no empty optional */
/* Tensor of an input. One that is missing or no array is an error, and gives id 0. A storage type is one,
 * but for ops that move. */
bw_tensor bw_onnx_in(struct bw_onnx_call *c, uint32_t input);
/* The same with storage types as their bytes, for bw_onnx_out_typed; as numbers: i8, u8 or f32. */
bw_tensor bw_onnx_in_bytes(struct bw_onnx_call *c, uint32_t input);
bw_tensor bw_onnx_in_number(struct bw_onnx_call *c, uint32_t input);
enum bw_dtype bw_onnx_in_dtype(struct bw_onnx_call *c, uint32_t input);
bool bw_onnx_wants(const struct bw_onnx_call *c, uint32_t output);
/* Sets an output. Returns 0, or what failed on the way. */
int bw_onnx_out(struct bw_onnx_call *c, uint32_t output, bw_tensor tensor);
/* The same of a storage type's bytes; other dtypes are those of the tensor. */
int bw_onnx_out_typed(struct bw_onnx_call *c, uint32_t output, bw_tensor tensor, enum bw_dtype dtype);
int bw_onnx_out_value(struct bw_onnx_call *c, uint32_t output, struct bw_onnx_value *value);
/* Host results of c's inputs; data from malloc, taken over. They are constants when all that was read is. */
int bw_onnx_out_array(struct bw_onnx_call *c, uint32_t output, enum bw_dtype dtype, uint32_t rank,
                      const int64_t *dims, void *data);
int bw_onnx_out_ints(struct bw_onnx_call *c, uint32_t output, const int64_t *values,
                     uint32_t count); /* i64 [count], of shapes */

struct bw_onnx_ints {
    const int64_t *data;
    uint64_t count;
    bool given;
};
const struct bw_onnx_attribute *bw_onnx_attribute(struct bw_onnx_call *c, const char *name,
                                                  enum bw_onnx_attribute_type type);
int64_t bw_onnx_int(struct bw_onnx_call *c, const char *name, int64_t absent);
/* An attribute that is the number of an element type; absent: its number without. One that is not supported,
 * or a storage type, is an error, and gives BW_VOID; _any lets storage types be. */
enum bw_dtype bw_onnx_dtype_any(struct bw_onnx_call *c, const char *name, int64_t absent);
enum bw_dtype bw_onnx_dtype(struct bw_onnx_call *c, const char *name, int64_t absent);
double bw_onnx_float(struct bw_onnx_call *c, const char *name, double absent);
struct bw_onnx_ints bw_onnx_ints(struct bw_onnx_call *c, const char *name);
bool bw_onnx_string_is(struct bw_onnx_call *c, const char *name, const char *text,
                       bool absent); /* absent: the answer without attribute */
const struct bw_onnx_graph *bw_onnx_graph_attribute(struct bw_onnx_call *c, const char *name);
/* Values of an input that decide something, as int64 or double, in the session's memory. */
struct bw_onnx_ints bw_onnx_ints_in(struct bw_onnx_call *c, uint32_t input);
const double *bw_onnx_doubles_in(struct bw_onnx_call *c, uint32_t input, uint64_t *count);
/* The same of an input that must have rank 1. */
struct bw_onnx_ints bw_onnx_list_in(struct bw_onnx_call *c, uint32_t input);
/* An input if it is there, else an attribute: what has moved from one to the other. */
struct bw_onnx_ints bw_onnx_ints_either(struct bw_onnx_call *c, uint32_t input, const char *name);
/* Values of an input as data: host pointer in inputs[input]->host, its dtype and dims beside it. */
int bw_onnx_realize(struct bw_onnx_call *c, uint32_t input);
/* The same where they decide how many elements the output has. */
int bw_onnx_realize_count(struct bw_onnx_call *c, uint32_t input);
/* A decision on one element: condition, count. */
int bw_onnx_decide_int(struct bw_onnx_call *c, struct bw_onnx_value *value, int64_t *result);

/* -rank .. rank-1 to 0 .. rank-1; out of range is an error, and gives 0. */
uint32_t bw_onnx_axis(struct bw_onnx_call *c, int64_t axis, uint32_t rank);
/* As a mask; one that is there twice is an error. */
uint32_t bw_onnx_axes(struct bw_onnx_call *c, struct bw_onnx_ints axes, uint32_t rank);
void *bw_onnx_alloc(struct bw_onnx_call *c, uint64_t count,
                    uint64_t size_bytes); /* session's memory, zeroed; NULL: error recorded */
/* Element i of a host array, any dtype. */
double bw_onnx_host_double(enum bw_dtype dtype, const void *data, int64_t i);
int64_t bw_onnx_host_int(enum bw_dtype dtype, const void *data, int64_t i);
void bw_onnx_host_store(enum bw_dtype dtype, void *data, int64_t i, double value);

/* One like x's dtype. */
static inline bw_tensor bw_onnx_scalar_like(struct bw_onnx_call *c, bw_tensor x, double value)
{
    return bw_tensor_scalar(c->g, bw_tensor_dtype(c->g, x), value);
}

#endif
