/* An ONNX model as structures: what the file says, checked for form, not yet for meaning. Source: onnx.proto
 * of ONNX 1.22.
 *
 * Text and tensor data stay in the file, which must stay mapped. Names of values are interned: a bw_symbol is
 * one name, 0 the empty one. */
#ifndef BW_COMPILER_ONNX_PROTO_H
#define BW_COMPILER_ONNX_PROTO_H

#include <stdbool.h>

#include <bellwire/tensor.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "compiler/onnx/wire.h"

typedef uint32_t bw_symbol;

enum {
    BW_ONNX_NESTING_MAX =
        24, /* graphs in attributes of nodes of graphs, sequences of sequences: bounds the recursion */
    BW_ONNX_DIM_MAX_LOG2 = 40, /* of one axis, and of the elements of a tensor in a file */
};

/* A few words for an error. */
struct bw_onnx_text {
    char text[64];
};

/* TensorProto.DataType: its numbers, as far as they are needed by name. The table is in dtypes.c. */
enum bw_onnx_dtype {
    BW_ONNX_UNDEFINED = 0,
    BW_ONNX_INT64 = 7,
    BW_ONNX_STRING = 8,
    BW_ONNX_BOOL = 9,
};
/* BW_VOID for strings, complex numbers and what is unknown. */
enum bw_dtype bw_onnx_dtype_of(int64_t onnx_dtype);
int64_t bw_onnx_dtype_to(enum bw_dtype dtype);
const char *bw_onnx_dtype_name(int64_t onnx_dtype);         /* "FLOAT16"; NULL: ONNX has no such number */
struct bw_onnx_text bw_onnx_dtype_text(int64_t onnx_dtype); /* the same for errors, of any number */
uint32_t bw_onnx_dtype_bits(int64_t onnx_dtype);            /* of an element in a file; 0: strings, unknown */

/* TensorProto's typed data fields */
enum {
    BW_ONNX_FLOAT_DATA = 4,
    BW_ONNX_INT32_DATA = 5,
    BW_ONNX_STRING_DATA = 6,
    BW_ONNX_INT64_DATA = 7,
    BW_ONNX_DOUBLE_DATA = 10,
    BW_ONNX_UINT64_DATA = 11
};

struct bw_onnx_tensor {
    struct bw_bytes name;
    bw_symbol symbol;
    int64_t dtype; /* enum bw_onnx_dtype */
    uint32_t rank;
    int64_t dims[BW_TENSOR_RANK_MAX];
    int64_t elements;
    struct bw_bytes message; /* whole, for the typed data fields */
    struct bw_bytes raw;
    bool has_raw, external;
    struct bw_bytes location; /* external file, relative to the model's directory */
    uint64_t external_offset, external_bytes;
    bool external_bytes_given;
    uint64_t offset;    /* in the model file */
    const void *mapped; /* external elements, once mapped */
    void *decoded;      /* elements that are not in the file as they must be in memory; owned by the model */
    uint32_t typed;     /* mask by number of the typed data fields that hold something */
};

struct bw_onnx_function;
struct bw_onnx_graph;
struct bw_onnx_schema;
struct bw_onnx_type;

/* AttributeProto.AttributeType */
enum bw_onnx_attribute_type {
    BW_ONNX_ATTR_NONE,
    BW_ONNX_ATTR_FLOAT,
    BW_ONNX_ATTR_INT,
    BW_ONNX_ATTR_STRING,
    BW_ONNX_ATTR_TENSOR,
    BW_ONNX_ATTR_GRAPH,
    BW_ONNX_ATTR_FLOATS,
    BW_ONNX_ATTR_INTS,
    BW_ONNX_ATTR_STRINGS,
    BW_ONNX_ATTR_TENSORS,
    BW_ONNX_ATTR_GRAPHS,
    BW_ONNX_ATTR_SPARSE_TENSOR,
    BW_ONNX_ATTR_SPARSE_TENSORS,
    BW_ONNX_ATTR_TYPE,
    BW_ONNX_ATTR_TYPES,
};

struct bw_onnx_attribute {
    struct bw_bytes name,
        reference; /* reference: name of the enclosing function's attribute that gives the value */
    enum bw_onnx_attribute_type type;
    int64_t i;
    float f;
    struct bw_bytes s;
    struct bw_onnx_tensor *tensor;
    struct bw_onnx_graph *graph;
    int64_t *ints;
    float *floats;
    struct bw_bytes *strings;
    uint64_t count; /* of ints, floats or strings */
};

struct bw_onnx_node {
    struct bw_bytes name, op_type, domain, overload;
    bw_symbol *inputs, *outputs;
    uint32_t input_count, output_count, attribute_count;
    struct bw_onnx_attribute *attributes;
    uint64_t offset;                         /* in the file */
    const struct bw_onnx_function *function; /* what it calls, or NULL */
    const struct bw_onnx_schema *schema;     /* of its op in its opset; NULL: a function, or unknown */
};

enum bw_onnx_kind {
    BW_ONNX_KIND_NONE,
    BW_ONNX_KIND_TENSOR,
    BW_ONNX_KIND_SEQUENCE,
    BW_ONNX_KIND_OPTIONAL,
    BW_ONNX_KIND_OTHER
};

struct bw_onnx_dim {
    int64_t value;          /* -1: not fixed */
    struct bw_bytes symbol; /* its name, maybe empty */
};

struct bw_onnx_type {
    enum bw_onnx_kind kind;
    int64_t dtype; /* tensors */
    bool has_shape;
    uint32_t rank;
    struct bw_onnx_dim dims[BW_TENSOR_RANK_MAX];
    struct bw_onnx_type *element; /* sequences and optionals */
};

struct bw_onnx_value_info {
    bw_symbol symbol;
    struct bw_onnx_type type;
    uint64_t offset; /* in the file */
};

struct bw_onnx_graph {
    struct bw_bytes name;
    struct bw_onnx_node *nodes;
    struct bw_onnx_tensor *initializers;
    struct bw_onnx_value_info *inputs, *outputs, *values; /* values: declared types of those in between */
    uint32_t node_count, initializer_count, input_count, output_count, value_count;
    uint64_t offset;        /* in the file */
    struct bw_map declared; /* symbol -> struct bw_onnx_type *, of inputs, outputs and values */
    struct bw_map last_use; /* symbol -> index of the last node that reads it, node_count for outputs;
                               subgraphs of a node count as it */
};

struct bw_onnx_opset {
    struct bw_bytes domain;
    int64_t version;
};

struct bw_onnx_opsets {
    struct bw_onnx_opset *rows;
    uint32_t count;
};

struct bw_onnx_function {
    struct bw_bytes name, domain, overload;
    struct bw_onnx_graph body;          /* inputs and outputs without types */
    struct bw_onnx_attribute *defaults; /* attribute_proto: attributes with default values */
    uint32_t default_count;
    struct bw_onnx_opsets opsets;
    uint64_t offset; /* in the file */
};

struct bw_onnx_model {
    struct bw_bytes file;
    int64_t ir_version;
    struct bw_onnx_opsets opsets;
    struct bw_onnx_graph graph;
    struct bw_onnx_function *functions;
    uint32_t function_count;
    struct bw_map function_map; /* hash -> struct bw_onnx_function * */
    struct bw_arena arena;
    BW_VEC(struct bw_bytes) symbols; /* by bw_symbol */
    struct bw_map symbol_map;        /* hash -> symbol */
    BW_VEC(struct bw_map *) maps;    /* to free */
    BW_VEC(void *) decoded;          /* to free */
};

/* Parses bytes that stay where they are, and checks that what they say holds together (check.h). -EBADMSG:
 * damaged or not ONNX, or not a model that ONNX allows, with byte offset and node; -ENOTSUP: sparse tensors,
 * opsets and IR versions that are not known and the like, named; -E2BIG: nested deeper than
 * BW_ONNX_NESTING_MAX, rank above BW_TENSOR_RANK_MAX. */
int bw_onnx_parse(struct bw_bytes file, struct bw_onnx_model **model, struct bw_err *err);
void bw_onnx_free(struct bw_onnx_model *model);

/* A TensorProto by itself (a test's input_0.pb, or inside a SequenceProto). Strings and dims as in models;
 * *tensor points into bytes. */
int bw_onnx_parse_tensor(struct bw_bytes file, struct bw_bytes message, struct bw_onnx_tensor *tensor,
                         struct bw_err *err);

/* The text of a symbol for errors: escaped (bw_text_escape), of a long one the beginning and "...". */
struct bw_onnx_text bw_onnx_text(struct bw_bytes bytes);
bool bw_onnx_equals(struct bw_bytes bytes, const char *text);
bool bw_onnx_same(struct bw_bytes a, struct bw_bytes b);
/* Domains "" and "ai.onnx" are one. */
bool bw_onnx_same_domain(struct bw_bytes a, struct bw_bytes b);
/* The version of a domain, or `absent`. */
int64_t bw_onnx_opset_of(const struct bw_onnx_opsets *opsets, struct bw_bytes domain, int64_t absent);
/* The function of a domain, name and overload, or NULL. */
const struct bw_onnx_function *bw_onnx_function_find(const struct bw_onnx_model *model,
                                                     struct bw_bytes domain, struct bw_bytes name,
                                                     struct bw_bytes overload);
/* Makes it one that is found: 0, -EEXIST or -ENOMEM. */
int bw_onnx_function_add(struct bw_onnx_model *model, const struct bw_onnx_function *function);
/* Records an error that says where the node is in the file, its name (or its first output's), op and opset.
 * Returns code. */
int bw_onnx_node_fail(const struct bw_onnx_model *model, const struct bw_onnx_node *node, int64_t opset,
                      struct bw_err *err, int code, const char *what);
/* The number of a name; 0 for the empty one. UINT32_MAX when out of memory. */
bw_symbol bw_onnx_intern(struct bw_onnx_model *model, struct bw_bytes name);

/* compiler/onnx/data.c: the elements of a tensor, row-major, as arrays have them: in the file itself where
 * possible (any alignment), else decoded once and kept in tensor->decoded (malloc; the caller sees to freeing
 * it). Strings: struct bw_bytes each. `directory` (may be NULL: refused) holds external data; `external`
 * receives a mapping that the caller ends. */
struct bw_onnx_mapping {
    void *address; /* NULL: none */
    uint64_t size_bytes, offset;
    int fd; /* open on the file, for the caller to close */
};
int bw_onnx_tensor_data(struct bw_onnx_tensor *tensor, const uint8_t *file, const char *directory,
                        const void **data, struct bw_onnx_mapping *external, struct bw_err *err);

/* compiler/onnx/external.c: opens a file that lies in a directory or below it: no way out of it by "..", by
 * an absolute path or by a symbolic link at any place. A descriptor of a regular file, of *size_bytes; never
 * waits for a FIFO. -EACCES: it leads out; -EINVAL: no regular file, or a name with a zero byte; -ENOENT and
 * the like. by_component: as on a kernel without openat2, where symbolic links are refused altogether. */
int bw_onnx_open_beneath(const char *directory, struct bw_bytes location, bool by_component,
                         uint64_t *size_bytes);

#endif
