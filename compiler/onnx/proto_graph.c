/* ONNX messages from the wire: nodes, graphs, functions, the model. */
#include <errno.h>
#include <stdlib.h>

#include "compiler/onnx/check.h"
#include "compiler/onnx/proto_internal.h"

/* ---- nodes and graphs ---- */

static int symbol_field(struct bw_onnx_parser *p, const struct bw_wire *wire,
                        const struct bw_wire_field *field, bw_symbol *list, uint32_t *count)
{
    int rc = bw_wire_expect(wire, field, BW_WIRE_BYTES);
    return rc ? rc : bw_onnx_parser_intern(p, field->bytes, &list[(*count)++]);
}

enum {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    NODE_OVERLOAD = 8
};

static int node_field(struct bw_onnx_parser *p, const struct bw_wire *wire, const struct bw_wire_field *field,
                      struct bw_onnx_node *node)
{
    int rc;
    switch (field->number) {
    case NODE_INPUT:
        return symbol_field(p, wire, field, node->inputs, &node->input_count);
    case NODE_OUTPUT:
        return symbol_field(p, wire, field, node->outputs, &node->output_count);
    case NODE_NAME:
        return bw_onnx_bytes_field(wire, field, &node->name);
    case NODE_OP_TYPE:
        return bw_onnx_bytes_field(wire, field, &node->op_type);
    case NODE_DOMAIN:
        return bw_onnx_bytes_field(wire, field, &node->domain);
    case NODE_OVERLOAD:
        return bw_onnx_bytes_field(wire, field, &node->overload);
    case NODE_ATTRIBUTE:
        rc = bw_wire_expect(wire, field, BW_WIRE_BYTES);
        return rc ? rc
                  : bw_onnx_read_attribute(p, wire, field->bytes, &node->attributes[node->attribute_count++]);
    default:
        return 0;
    }
}

static int parse_node(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                      struct bw_onnx_node *node)
{
    struct bw_wire wire = bw_wire_inside(outer, bytes, "NodeProto");
    struct bw_wire_field field;
    int rc;
    node->offset = (uint64_t)(bytes.data - wire.file);
    node->inputs = bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, NODE_INPUT), sizeof *node->inputs);
    node->outputs = bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, NODE_OUTPUT), sizeof *node->outputs);
    node->attributes =
        bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, NODE_ATTRIBUTE), sizeof *node->attributes);
    if (!node->inputs || !node->outputs || !node->attributes)
        return -ENOMEM;
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        rc = node_field(p, &wire, &field, node);
        if (rc)
            return rc;
    }
    return rc;
}

/* Puts what the node says of itself in front of the error: its fields may stand in any order, or be damaged.
 */
static void node_name_in_error(struct bw_onnx_parser *p, struct bw_wire wire, uint32_t index)
{
    struct bw_bytes name = {0}, op_type = {0};
    struct bw_wire_field field;
    wire.err = NULL;
    while (bw_wire_next(&wire, &field) > 0) {
        if (field.number == NODE_NAME && field.type == BW_WIRE_BYTES)
            name = field.bytes;
        if (field.number == NODE_OP_TYPE && field.type == BW_WIRE_BYTES)
            op_type = field.bytes;
    }
    const char *quote = name.size_bytes ? "'" : "";
    bw_err_prefix(p->err, "node %u%s%s%s%s%s%s%s: ", index, name.size_bytes ? " " : "", quote,
                  bw_onnx_text(name).text, quote, op_type.size_bytes ? " (" : "", bw_onnx_text(op_type).text,
                  op_type.size_bytes ? ")" : "");
    p->placed = true;
}

/* The next of a graph's or a function's. */
static int node_read(struct bw_onnx_parser *p, const struct bw_wire *wire, struct bw_bytes bytes,
                     struct bw_onnx_node *nodes, uint32_t *count)
{
    uint32_t index = (*count)++;
    int rc = parse_node(p, wire, bytes, &nodes[index]);
    if (rc && !p->placed) /* the innermost one: bodies have nodes, too */
        node_name_in_error(p, bw_wire_inside(wire, bytes, "NodeProto"), index);
    return rc;
}

enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE = 13,
    GRAPH_SPARSE = 15
};

static int graph_field(struct bw_onnx_parser *p, const struct bw_wire *wire,
                       const struct bw_wire_field *field, struct bw_onnx_graph *graph)
{
    bool known = field->number == GRAPH_NODE || field->number == GRAPH_NAME ||
                 field->number == GRAPH_INITIALIZER || field->number == GRAPH_SPARSE ||
                 (field->number >= GRAPH_INPUT && field->number <= GRAPH_VALUE);
    int rc = known ? bw_wire_expect(wire, field, BW_WIRE_BYTES) : 0;
    if (rc)
        return rc;
    switch (field->number) {
    case GRAPH_NODE:
        return node_read(p, wire, field->bytes, graph->nodes, &graph->node_count);
    case GRAPH_NAME:
        return bw_onnx_bytes_field(wire, field, &graph->name);
    case GRAPH_INITIALIZER:
        return bw_onnx_read_tensor(p, wire, field->bytes, &graph->initializers[graph->initializer_count++]);
    case GRAPH_INPUT:
        return bw_onnx_read_value_info(p, wire, field->bytes, &graph->inputs[graph->input_count++]);
    case GRAPH_OUTPUT:
        return bw_onnx_read_value_info(p, wire, field->bytes, &graph->outputs[graph->output_count++]);
    case GRAPH_VALUE:
        return bw_onnx_read_value_info(p, wire, field->bytes, &graph->values[graph->value_count++]);
    case GRAPH_SPARSE:
        return bw_onnx_parser_error(p, wire, field->offset, -ENOTSUP,
                                    "sparse initializers are not supported");
    default:
        return 0;
    }
}

int bw_onnx_read_graph(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                       struct bw_onnx_graph *graph)
{
    struct bw_wire wire = bw_wire_inside(outer, bytes, "GraphProto");
    struct bw_wire_field field;
    int rc = bw_onnx_parser_deeper(p, &wire, (uint64_t)(bytes.data - wire.file));
    if (rc)
        return rc;
    graph->nodes = bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, GRAPH_NODE), sizeof *graph->nodes);
    graph->initializers =
        bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, GRAPH_INITIALIZER), sizeof *graph->initializers);
    graph->inputs = bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, GRAPH_INPUT), sizeof *graph->inputs);
    graph->outputs = bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, GRAPH_OUTPUT), sizeof *graph->outputs);
    graph->values = bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, GRAPH_VALUE), sizeof *graph->values);
    if (!graph->nodes || !graph->initializers || !graph->inputs || !graph->outputs || !graph->values)
        return -ENOMEM;
    graph->offset = (uint64_t)(bytes.data - wire.file);
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        rc = graph_field(p, &wire, &field, graph);
        if (rc)
            break;
    }
    p->depth--;
    return rc;
}

/* ---- functions and the model ---- */

static int parse_opset(const struct bw_wire *outer, struct bw_bytes bytes, struct bw_onnx_opset *opset)
{
    struct bw_wire wire = bw_wire_inside(outer, bytes, "OperatorSetIdProto");
    struct bw_wire_field field;
    int rc;
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        rc = field.number == 1   ? bw_onnx_bytes_field(&wire, &field, &opset->domain)
             : field.number == 2 ? bw_onnx_int_field(&wire, &field, &opset->version)
                                 : 0;
        if (rc)
            return rc;
    }
    return rc;
}

enum {
    FN_NAME = 1,
    FN_INPUT = 4,
    FN_OUTPUT = 5,
    FN_NODE = 7,
    FN_OPSET = 9,
    FN_DOMAIN = 10,
    FN_DEFAULT = 11,
    FN_OVERLOAD = 13
};

static bool function_has(uint32_t field)
{
    return field == FN_NAME || field == FN_INPUT || field == FN_OUTPUT || field == FN_NODE ||
           (field >= FN_OPSET && field <= FN_DEFAULT) || field == FN_OVERLOAD;
}

static int function_field(struct bw_onnx_parser *p, const struct bw_wire *wire,
                          const struct bw_wire_field *field, struct bw_onnx_function *function)
{
    struct bw_onnx_graph *body = &function->body;
    switch (field->number) {
    case FN_NAME:
        return bw_onnx_bytes_field(wire, field, &function->name);
    case FN_DOMAIN:
        return bw_onnx_bytes_field(wire, field, &function->domain);
    case FN_OVERLOAD:
        return bw_onnx_bytes_field(wire, field, &function->overload);
    case FN_INPUT:
        return bw_onnx_parser_intern(p, field->bytes, &body->inputs[body->input_count++].symbol);
    case FN_OUTPUT:
        return bw_onnx_parser_intern(p, field->bytes, &body->outputs[body->output_count++].symbol);
    case FN_NODE:
        return node_read(p, wire, field->bytes, body->nodes, &body->node_count);
    case FN_OPSET:
        return parse_opset(wire, field->bytes, &function->opsets.rows[function->opsets.count++]);
    case FN_DEFAULT:
        return bw_onnx_read_attribute(p, wire, field->bytes, &function->defaults[function->default_count++]);
    default:
        return 0;
    }
}

static int parse_function(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                          struct bw_onnx_function *function)
{
    struct bw_wire wire = bw_wire_inside(outer, bytes, "FunctionProto");
    struct bw_wire_field field;
    int rc;
    function->offset = function->body.offset = (uint64_t)(bytes.data - wire.file);
    function->body.inputs =
        bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, FN_INPUT), sizeof *function->body.inputs);
    function->body.outputs =
        bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, FN_OUTPUT), sizeof *function->body.outputs);
    function->body.nodes =
        bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, FN_NODE), sizeof *function->body.nodes);
    function->defaults =
        bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, FN_DEFAULT), sizeof *function->defaults);
    function->opsets.rows =
        bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, FN_OPSET), sizeof *function->opsets.rows);
    if (!function->body.inputs || !function->body.outputs || !function->body.nodes || !function->defaults ||
        !function->opsets.rows)
        return -ENOMEM;
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        rc = function_has(field.number) ? bw_wire_expect(&wire, &field, BW_WIRE_BYTES) : 0;
        if (!rc)
            rc = function_field(p, &wire, &field, function);
        if (rc)
            return rc;
    }
    return rc;
}

enum { MODEL_IR_VERSION = 1, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_FUNCTION = 25 };

static int model_field(struct bw_onnx_parser *p, const struct bw_wire *wire,
                       const struct bw_wire_field *field, bool *has_graph)
{
    struct bw_onnx_model *model = p->model;
    int rc;
    switch (field->number) {
    case MODEL_IR_VERSION:
        return bw_onnx_int_field(wire, field, &model->ir_version);
    case MODEL_GRAPH:
        if (*has_graph)
            return bw_onnx_parser_error(p, wire, field->offset, -EBADMSG, "a second graph");
        *has_graph = true;
        rc = bw_wire_expect(wire, field, BW_WIRE_BYTES);
        return rc ? rc : bw_onnx_read_graph(p, wire, field->bytes, &model->graph);
    case MODEL_OPSET:
        rc = bw_wire_expect(wire, field, BW_WIRE_BYTES);
        return rc ? rc : parse_opset(wire, field->bytes, &model->opsets.rows[model->opsets.count++]);
    case MODEL_FUNCTION:
        rc = bw_wire_expect(wire, field, BW_WIRE_BYTES);
        return rc ? rc : parse_function(p, wire, field->bytes, &model->functions[model->function_count++]);
    default:
        return 0;
    }
}

static int parse_model(struct bw_onnx_parser *p)
{
    struct bw_bytes file = p->model->file;
    struct bw_wire wire = {.file = file.data,
                           .at = file.data,
                           .end = file.data + file.size_bytes,
                           .message = "ModelProto",
                           .err = p->err};
    struct bw_wire_field field;
    bool has_graph = false;
    int rc;
    p->model->opsets.rows =
        bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, MODEL_OPSET), sizeof *p->model->opsets.rows);
    p->model->functions =
        bw_onnx_parser_alloc(p, bw_onnx_field_count(wire, MODEL_FUNCTION), sizeof *p->model->functions);
    if (!p->model->opsets.rows || !p->model->functions)
        return -ENOMEM;
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        rc = model_field(p, &wire, &field, &has_graph);
        if (rc)
            return rc;
    }
    if (!rc && !has_graph)
        rc = bw_fail(p->err, -EBADMSG, "onnx", "no graph in %llu bytes", (unsigned long long)file.size_bytes);
    return rc;
}

/* ---- last uses ---- */

struct use_frame {
    struct bw_map *map;
    uint32_t node;
    const struct use_frame *outer;
};

static int use_note(const struct use_frame *frame, bw_symbol symbol)
{
    for (; frame; frame = frame->outer)
        if (symbol && bw_map_set(frame->map, symbol, frame->node))
            return -ENOMEM;
    return 0;
}

static int uses_find(struct bw_onnx_parser *p, struct bw_onnx_graph *graph, const struct use_frame *outer)
{
    struct use_frame frame = {.map = &graph->last_use, .outer = outer};
    if (bw_vec_push(&p->model->maps, &graph->last_use))
        return bw_fail(p->err, -ENOMEM, "onnx", "table of uses");
    int rc = 0;
    for (uint32_t n = 0; !rc && n < graph->node_count; n++) {
        const struct bw_onnx_node *node = &graph->nodes[n];
        frame.node = n;
        for (uint32_t i = 0; !rc && i < node->input_count; i++)
            rc = use_note(&frame, node->inputs[i]);
        for (uint32_t i = 0; !rc && i < node->attribute_count; i++)
            if (node->attributes[i].graph)
                rc = uses_find(p, node->attributes[i].graph, &frame);
    }
    frame.node = graph->node_count;
    for (uint32_t i = 0; !rc && i < graph->output_count; i++)
        rc = use_note(&frame, graph->outputs[i].symbol);
    return rc ? bw_fail(p->err, rc, "onnx", "table of uses") : 0;
}

int bw_onnx_parse(struct bw_bytes file, struct bw_onnx_model **model, struct bw_err *err)
{
    struct bw_onnx_parser p = {.err = err, .model = calloc(1, sizeof *p.model)};
    if (!p.model)
        return bw_fail(err, -ENOMEM, "onnx", "model");
    p.model->file = file;
    int rc =
        bw_vec_push(&p.model->symbols, (struct bw_bytes){0}) ? bw_fail(err, -ENOMEM, "onnx", "model") : 0;
    if (!rc)
        rc = parse_model(&p);
    if (!rc)
        rc = bw_onnx_check(p.model, err);
    if (!rc)
        rc = uses_find(&p, &p.model->graph, NULL);
    for (uint32_t i = 0; !rc && i < p.model->function_count; i++)
        rc = uses_find(&p, &p.model->functions[i].body, NULL);
    if (rc) {
        bw_onnx_free(p.model);
        return rc;
    }
    *model = p.model;
    return 0;
}

void bw_onnx_free(struct bw_onnx_model *model)
{
    if (!model)
        return;
    for (size_t i = 0; i < model->maps.count; i++)
        bw_map_free(model->maps.data[i]);
    for (size_t i = 0; i < model->decoded.count; i++)
        free(model->decoded.data[i]);
    bw_vec_free(&model->maps);
    bw_vec_free(&model->decoded);
    bw_vec_free(&model->symbols);
    bw_map_free(&model->symbol_map);
    bw_map_free(&model->function_map);
    bw_arena_free(&model->arena);
    free(model);
}
