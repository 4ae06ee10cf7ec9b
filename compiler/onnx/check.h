/* Whether a parsed model holds together: its versions, the names of its values, and its nodes against what
 * ONNX says of their ops. What a node does with the shapes and types it gets is seen when it is imported. */
#ifndef BW_COMPILER_ONNX_CHECK_H
#define BW_COMPILER_ONNX_CHECK_H

#include "compiler/onnx/proto.h"

/* -EBADMSG: not a model that ONNX allows; -ENOTSUP: versions that are not known. Byte offset and node are
 * named. Fills each node's function and schema, and each graph's table of declared types. */
int bw_onnx_check(struct bw_onnx_model *model, struct bw_err *err);

/* ---- for compiler/onnx/check*.c only ---- */

struct bw_onnx_checker {
    struct bw_onnx_model *model;
    const struct bw_onnx_opsets *opsets; /* of the graph or function that is being checked */
    struct bw_err *err;
};

/* check_node.c: inputs, outputs and attributes of a node against its function or op. */
int bw_onnx_check_node(struct bw_onnx_checker *k, struct bw_onnx_node *node);
/* check_control.c: the graphs of If, Loop, Scan and SequenceMap against their node. */
int bw_onnx_check_control(struct bw_onnx_checker *k, const struct bw_onnx_node *node);
/* check_dtypes.c: the element type of an initializer; of what a graph declares; of a node's tensors. */
int bw_onnx_check_dtype(const struct bw_onnx_checker *k, const struct bw_onnx_graph *graph, bw_symbol symbol,
                        uint64_t offset, int64_t onnx_dtype);
int bw_onnx_check_type(const struct bw_onnx_checker *k, const struct bw_onnx_graph *graph,
                       const struct bw_onnx_value_info *info);
int bw_onnx_check_attribute_dtypes(const struct bw_onnx_checker *k, const struct bw_onnx_node *node);
/* Records an error that names the node; returns code. */
int bw_onnx_check_fail(const struct bw_onnx_checker *k, const struct bw_onnx_node *node, int code,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
const struct bw_onnx_attribute *bw_onnx_check_attribute(const struct bw_onnx_node *node, const char *name);

#endif
