/* Shared by compiler/onnx/proto*.c only. */
#ifndef BW_COMPILER_ONNX_PROTO_INTERNAL_H
#define BW_COMPILER_ONNX_PROTO_INTERNAL_H

#include "compiler/onnx/proto.h"

struct bw_onnx_parser {
    struct bw_onnx_model *model; /* NULL when a single tensor is parsed */
    struct bw_err *err;
    uint32_t depth;
    bool placed; /* the error says in which node */
};

/* Zeroed memory of the model, bounded by the file's size; NULL with the error recorded. */
void *bw_onnx_parser_alloc(struct bw_onnx_parser *p, uint64_t count, uint64_t size_bytes);
/* Records an error with offset and message; returns code. The node is put in front where it ends. */
int bw_onnx_parser_error(const struct bw_onnx_parser *p, const struct bw_wire *wire, uint64_t offset,
                         int code, const char *what);
/* One level of recursion more: -E2BIG beyond BW_ONNX_NESTING_MAX. The caller lowers p->depth again. */
int bw_onnx_parser_deeper(struct bw_onnx_parser *p, const struct bw_wire *wire, uint64_t offset);
int bw_onnx_parser_intern(struct bw_onnx_parser *p, struct bw_bytes name, bw_symbol *symbol);
/* How often a field occurs; damage is found when the message is read. */
uint64_t bw_onnx_field_count(struct bw_wire wire, uint32_t number);
int bw_onnx_bytes_field(const struct bw_wire *wire, const struct bw_wire_field *field,
                        struct bw_bytes *bytes);
int bw_onnx_int_field(const struct bw_wire *wire, const struct bw_wire_field *field, int64_t *value);

int bw_onnx_read_tensor(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                        struct bw_onnx_tensor *tensor);
int bw_onnx_read_value_info(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                            struct bw_onnx_value_info *info);
int bw_onnx_read_attribute(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                           struct bw_onnx_attribute *attribute);
int bw_onnx_read_graph(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                       struct bw_onnx_graph *graph);

#endif
