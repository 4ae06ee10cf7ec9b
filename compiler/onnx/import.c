/* Goes through the nodes of a graph, finds each op's function and calls it. */
#include "compiler/onnx/import.h"

#include <errno.h>
#include <string.h>

static struct bw_onnx_value *scope_find(const struct bw_onnx_scope *scope, bw_symbol symbol)
{
    uint64_t address;
    for (; scope; scope = scope->outer)
        if (bw_map_get(&scope->values, symbol, &address))
            return (struct bw_onnx_value *)(uintptr_t)address;
    return NULL;
}

static int scope_set(struct bw_onnx_session *session, struct bw_onnx_scope *scope, bw_symbol symbol,
                     struct bw_onnx_value *value)
{
    if (symbol && bw_map_set(&scope->values, symbol, (uint64_t)(uintptr_t)value))
        return bw_fail(session->err, -ENOMEM, "onnx", "names of values");
    return 0;
}

static bool node_is_used(const struct bw_onnx_graph *graph, const struct bw_onnx_node *node)
{
    uint64_t last_use;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] && bw_map_get(&graph->last_use, node->outputs[i], &last_use))
            return true;
    return false;
}

/* An error without the node's name gets it; the text of the cause stays, and its hint. */
static int report(struct bw_onnx_call *c, int rc)
{
    struct bw_err *err = c->session->err;
    if (!rc || c->session->reported)
        return rc;
    char what[160] = "failed", hint[sizeof err->hint] = "";
    if (err && err->what[0]) {
        memcpy(what, err->what, sizeof what - 1);
        what[sizeof what - 1] = 0;
        memcpy(hint, err->hint, sizeof hint);
    }
    c->rc = 0;
    rc = bw_onnx_fail(c, rc, "%s", what);
    if (hint[0])
        bw_err_hint(err, "%s", hint);
    return rc;
}

static int run_nodes(struct bw_onnx_session *session, struct bw_onnx_scope *scope);

/* Runs a graph's body in a scope that holds its inputs, reads its outputs, and empties the scope. */
static int run_scope(struct bw_onnx_session *session, struct bw_onnx_scope *scope,
                     struct bw_onnx_value **outputs)
{
    const struct bw_onnx_graph *graph = scope->graph;
    if (session->depth == BW_ONNX_CALL_DEPTH_MAX) {
        bw_map_free(&scope->values);
        return bw_fail(session->err, -E2BIG, "onnx",
                       "graph '%s': subgraphs and functions within each other deeper than %d",
                       bw_onnx_text(graph->name).text, BW_ONNX_CALL_DEPTH_MAX);
    }
    session->depth++;
    scope->caller = session->scope;
    session->scope = scope;
    int rc = 0;
    for (uint32_t i = 0; !rc && i < graph->initializer_count; i++) {
        struct bw_onnx_value *value = bw_onnx_value_proto(session, &graph->initializers[i]);
        rc = value          ? scope_set(session, scope, graph->initializers[i].symbol, value)
             : session->err ? session->err->code
                            : -EINVAL;
    }
    if (!rc)
        rc = run_nodes(session, scope);
    for (uint32_t i = 0; !rc && i < graph->output_count; i++) {
        outputs[i] = scope_find(scope, graph->outputs[i].symbol);
        if (!outputs[i])
            rc = bw_fail(session->err, -EBADMSG, "onnx", "output '%s' of graph '%s' is never computed",
                         bw_onnx_text(session->proto->symbols.data[graph->outputs[i].symbol]).text,
                         bw_onnx_text(graph->name).text);
    }
    session->scope = scope->caller;
    session->depth--;
    bw_map_free(&scope->values);
    return rc;
}

static int call_function(struct bw_onnx_call *c, const struct bw_onnx_function *function)
{
    struct bw_onnx_session *session = c->session;
    struct bw_onnx_frame frame = {.outer = session->frame, .node = c->node, .function = function};
    struct bw_onnx_scope scope = {.graph = &function->body};
    const struct bw_onnx_opsets *opsets = session->opsets;
    struct bw_onnx_value **outputs = bw_onnx_alloc(c, function->body.output_count, sizeof *outputs);
    int rc = outputs ? 0 : c->rc;
    for (uint32_t i = 0; !rc && i < function->body.input_count; i++) {
        struct bw_onnx_value *given =
            i < c->input_count && c->inputs[i] ? c->inputs[i] : bw_onnx_value_none(session);
        rc = given ? scope_set(session, &scope, function->body.inputs[i].symbol, given) : -ENOMEM;
    }
    session->frame = &frame;
    session->opsets = function->opsets.count ? &function->opsets : opsets;
    if (!rc)
        rc = run_scope(session, &scope, outputs);
    else
        bw_map_free(&scope.values);
    session->frame = frame.outer;
    session->opsets = opsets;
    for (uint32_t i = 0; !rc && i < c->output_count && i < function->body.output_count; i++)
        c->outputs[i] = outputs[i];
    return rc;
}

static int call_op(struct bw_onnx_call *c)
{
    bool known;
    c->op = bw_onnx_op_find(c->node->domain, c->node->op_type, c->opset, &known);
    if (c->op)
        return c->op->function(c);
    struct bw_bytes domain = c->node->domain;
    if (known)
        return bw_onnx_fail(c, -ENOTSUP, "the op does not exist in this opset");
    return bw_onnx_fail(c, -ENOTSUP, "op of domain '%s' is not supported",
                        domain.size_bytes ? bw_onnx_text(domain).text : "ai.onnx");
}

static int call_inputs(struct bw_onnx_call *c, struct bw_onnx_scope *scope)
{
    c->inputs = bw_onnx_alloc(c, c->input_count, sizeof *c->inputs);
    c->outputs = bw_onnx_alloc(c, c->output_count, sizeof *c->outputs);
    for (uint32_t i = 0; !c->rc && i < c->input_count; i++) {
        bw_symbol symbol = c->node->inputs[i];
        c->inputs[i] = symbol ? scope_find(scope, symbol) : NULL;
        if (symbol && !c->inputs[i])
            bw_onnx_fail(c, -EBADMSG, "input '%s' is not defined before it is read",
                         bw_onnx_text(c->session->proto->symbols.data[symbol]).text);
    }
    return c->rc;
}

static int set_output(struct bw_onnx_call *c, struct bw_onnx_scope *scope, uint32_t output)
{
    uint64_t last_use;
    bw_symbol symbol = c->node->outputs[output];
    struct bw_onnx_value *value = c->outputs[output];
    if (!symbol)
        return 0;
    if (!value)
        return bw_map_get(&scope->graph->last_use, symbol, &last_use)
                   ? bw_onnx_fail(c, -ENOTSUP, "output %u is not supported", output)
                   : 0;
    int rc = bw_onnx_check_declared(c, scope->graph, symbol, value, true);
    if (!rc)
        rc = bw_onnx_value_fold(c->session, value);
    return rc ? rc : scope_set(c->session, scope, symbol, value);
}

/* What is made of a node bears its name in errors of what runs it later. */
static void label_nodes(struct bw_onnx_session *session, const struct bw_onnx_node *node)
{
    struct bw_bytes name = node->name;
    if (!name.size_bytes && node->output_count)
        name = session->proto->symbols.data[node->outputs[0]];
    bw_tensor_graph_label(session->graph,
                          (struct bw_tensor_label){.name = name.data,
                                                   .name_bytes = name.size_bytes,
                                                   .op_type = node->op_type.data,
                                                   .op_type_bytes = node->op_type.size_bytes});
}

static int run_node(struct bw_onnx_session *session, struct bw_onnx_scope *scope,
                    const struct bw_onnx_node *node)
{
    struct bw_onnx_call c = {.session = session,
                             .g = session->graph,
                             .node = node,
                             .input_count = node->input_count,
                             .output_count = node->output_count,
                             .opset = bw_onnx_opset_of(session->opsets, node->domain, 1)};
    int rc = bw_onnx_iteration(&c);
    if (!rc)
        rc = call_inputs(&c, scope);
    if (!rc)
        rc = bw_onnx_check_types(&c);
    if (!rc)
        rc = node->function ? call_function(&c, node->function) : call_op(&c);
    rc = rc ? rc : c.rc;
    if (!rc)
        rc = bw_tensor_graph_error(session->graph, session->err);
    if (!rc && bw_ir_count(session->graph->ir) > BW_ONNX_IR_NODES_MAX)
        rc = bw_onnx_fail(&c, -E2BIG, "the graph has more than %d operations", BW_ONNX_IR_NODES_MAX);
    for (uint32_t i = 0; !rc && i < node->output_count; i++)
        rc = set_output(&c, scope, i);
    label_nodes(session, node);
    return report(&c, rc);
}

static int run_nodes(struct bw_onnx_session *session, struct bw_onnx_scope *scope)
{
    int rc = 0;
    for (uint32_t n = 0; !rc && n < scope->graph->node_count; n++) {
        scope->position = n;
        if (node_is_used(scope->graph, &scope->graph->nodes[n]))
            rc = run_node(session, scope, &scope->graph->nodes[n]);
    }
    scope->position = scope->graph->node_count;
    return rc;
}

struct bw_onnx_value *bw_onnx_named(struct bw_onnx_call *c, struct bw_bytes name)
{
    bw_symbol symbol = bw_onnx_intern(c->session->proto, name);
    return symbol && symbol != UINT32_MAX ? scope_find(c->session->scope, symbol) : NULL;
}

int bw_onnx_iteration(struct bw_onnx_call *c)
{
    if (++c->session->nodes > BW_ONNX_NODES_MAX)
        return bw_onnx_fail(c, -E2BIG, "more than %d nodes and iterations in one run", BW_ONNX_NODES_MAX);
    return 0;
}

int bw_onnx_pin(struct bw_onnx_call *c, struct bw_onnx_value *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (bw_vec_push(&c->session->pinned, values[i])) {
            c->session->pinned.count -= i;
            return bw_onnx_fail(c, -ENOMEM, "no memory");
        }
    return 0;
}

void bw_onnx_unpin(struct bw_onnx_call *c, uint32_t count)
{
    c->session->pinned.count -= count;
}

int bw_onnx_subgraph(struct bw_onnx_call *c, const struct bw_onnx_graph *graph,
                     struct bw_onnx_value *const *inputs, uint32_t input_count,
                     struct bw_onnx_value **outputs)
{
    struct bw_onnx_scope scope = {.outer = c->session->scope, .graph = graph};
    int rc = 0;
    if (graph->input_count != input_count)
        return bw_onnx_fail(c, -EBADMSG, "its graph '%s' has %u inputs instead of %u",
                            bw_onnx_text(graph->name).text, graph->input_count, input_count);
    for (uint32_t i = 0; !rc && i < input_count; i++) {
        rc = bw_onnx_check_declared(c, graph, graph->inputs[i].symbol, inputs[i], false);
        if (!rc)
            rc = scope_set(c->session, &scope, graph->inputs[i].symbol, inputs[i]);
    }
    if (!rc)
        return run_scope(c->session, &scope, outputs);
    bw_map_free(&scope.values);
    return rc;
}

int bw_onnx_session_import(struct bw_onnx_session *session, struct bw_onnx_value *const *inputs,
                           struct bw_onnx_value **outputs)
{
    struct bw_onnx_graph *graph = &session->proto->graph;
    struct bw_onnx_scope scope = {.graph = graph};
    int rc = 0;
    session->opsets = &session->proto->opsets;
    for (uint32_t i = 0; !rc && i < graph->input_count; i++)
        if (inputs[i]) /* NULL: an initializer is its default */
            rc = scope_set(session, &scope, graph->inputs[i].symbol, inputs[i]);
    if (rc) {
        bw_map_free(&scope.values);
        return rc;
    }
    return run_scope(session, &scope, outputs);
}

int bw_onnx_output_fail(struct bw_onnx_session *session, uint32_t output, int code, const char *what)
{
    const struct bw_onnx_graph *graph = &session->proto->graph;
    for (uint32_t n = graph->node_count; n-- > 0;)
        for (uint32_t i = 0; i < graph->nodes[n].output_count; i++)
            if (graph->nodes[n].outputs[i] == graph->outputs[output].symbol)
                return bw_onnx_node_fail(session->proto, &graph->nodes[n],
                                         bw_onnx_opset_of(&session->proto->opsets, graph->nodes[n].domain, 1),
                                         session->err, code, what);
    return bw_fail(session->err, code, "onnx", "output '%s': %s",
                   bw_onnx_text(session->proto->symbols.data[graph->outputs[output].symbol]).text, what);
}
