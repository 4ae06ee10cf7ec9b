/* Versions and names: see check.h. */
#include "compiler/onnx/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/onnx/schema.h"

int bw_onnx_check_fail(const struct bw_onnx_checker *k, const struct bw_onnx_node *node, int code,
                       const char *format, ...)
{
    char what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return bw_onnx_node_fail(k->model, node, bw_onnx_opset_of(k->opsets, node->domain, 1), k->err, code,
                             what);
}

const struct bw_onnx_attribute *bw_onnx_check_attribute(const struct bw_onnx_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (bw_onnx_equals(node->attributes[i].name, name))
            return &node->attributes[i];
    return NULL;
}

static struct bw_onnx_text name_of(const struct bw_onnx_checker *k, bw_symbol symbol)
{
    return bw_onnx_text(k->model->symbols.data[symbol]);
}

static int no_memory(const struct bw_onnx_checker *k)
{
    return bw_fail(k->err, -ENOMEM, "onnx", "names of values");
}

/* ---- versions ---- */

static int64_t newest_opset(struct bw_bytes domain)
{
    struct bw_bytes standard = {0};
    return bw_onnx_same_domain(domain, standard)                ? BW_ONNX_OPSET_MAX
           : bw_onnx_equals(domain, "ai.onnx.preview.training") ? BW_ONNX_OPSET_TRAINING_MAX
                                                                : INT64_MAX; /* none of its ops is known */
}

static int check_opsets(const struct bw_onnx_checker *k, const struct bw_onnx_opsets *opsets)
{
    for (uint32_t i = 0; i < opsets->count; i++) {
        struct bw_bytes domain = opsets->rows[i].domain;
        struct bw_onnx_text name =
            domain.size_bytes ? bw_onnx_text(domain) : (struct bw_onnx_text){"ai.onnx"};
        int64_t version = opsets->rows[i].version, newest = newest_opset(domain);
        if (bw_onnx_opset_of(opsets, domain, 0) != version)
            return bw_fail(k->err, -EBADMSG, "onnx", "opset_import names two versions of domain '%s'",
                           name.text);
        if (version >= 1 && version <= newest)
            continue;
        int rc =
            bw_fail(k->err, -ENOTSUP, "onnx", "opset %lld of domain '%s'", (long long)version, name.text);
        if (newest < INT64_MAX)
            bw_err_expected(k->err, "1 to %lld", (long long)newest);
        bw_err_hint(k->err, "export the model for an opset that is supported");
        return rc;
    }
    return 0;
}

static int check_versions(const struct bw_onnx_checker *k)
{
    const struct bw_onnx_model *model = k->model;
    if (model->ir_version < 1 || model->ir_version > BW_ONNX_IR_VERSION_MAX) {
        int rc = bw_fail(k->err, -ENOTSUP, "onnx", "IR version %lld", (long long)model->ir_version);
        bw_err_expected(k->err, "1 to %d", BW_ONNX_IR_VERSION_MAX);
        return rc;
    }
    if (model->ir_version >= BW_ONNX_IR_VERSION_OPSETS && !model->opsets.count)
        return bw_fail(k->err, -EBADMSG, "onnx", "no opset_import, which IR version %lld must have",
                       (long long)model->ir_version);
    return check_opsets(k, &model->opsets);
}

/* ---- graphs ---- */

/* Names that are known where a node stands: of its graph so far, and of the graphs around it. */
struct scope {
    const struct scope *outer;
    struct bw_onnx_graph *graph;
    struct bw_map defined; /* symbol -> 1 */
    uint32_t position;     /* of the node that is being checked */
};

static bool is_defined(const struct scope *scope, bw_symbol symbol)
{
    uint64_t ignored;
    for (; scope; scope = scope->outer)
        if (bw_map_get(&scope->defined, symbol, &ignored))
            return true;
    return false;
}

static bool is_output(const struct bw_onnx_node *node, bw_symbol symbol)
{
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] == symbol)
            return true;
    return false;
}

/* A walk from a node to all nodes of its graph that it depends on, through their inputs and those of their
 * graphs. Only when a model is refused, to say why. */
struct search {
    struct bw_map producers;  /* symbol -> node */
    struct bw_map seen;       /* node -> 1 */
    BW_VEC(uint32_t) waiting; /* nodes */
};

static int search_reads(struct search *s, const struct bw_onnx_node *node)
{
    uint64_t producer, ignored;
    int rc = 0;
    for (uint32_t i = 0; !rc && i < node->input_count; i++)
        if (bw_map_get(&s->producers, node->inputs[i], &producer) &&
            !bw_map_get(&s->seen, producer, &ignored))
            rc = bw_map_set(&s->seen, producer, 1) || bw_vec_push(&s->waiting, (uint32_t)producer) ? -ENOMEM
                                                                                                   : 0;
    for (uint32_t i = 0; !rc && i < node->attribute_count; i++) {
        const struct bw_onnx_graph *inner = node->attributes[i].graph;
        for (uint32_t n = 0; inner && !rc && n < inner->node_count; n++)
            rc = search_reads(s, &inner->nodes[n]);
    }
    return rc;
}

/* Whether the node at `from` depends on itself. */
static bool is_in_cycle(struct bw_onnx_graph *graph, uint32_t from)
{
    struct search s = {0};
    uint64_t found = 0;
    int rc = 0;
    for (uint32_t n = 0; !rc && n < graph->node_count; n++)
        for (uint32_t i = 0; !rc && i < graph->nodes[n].output_count; i++)
            rc = bw_map_set(&s.producers, graph->nodes[n].outputs[i], n);
    if (!rc)
        rc = search_reads(&s, &graph->nodes[from]);
    while (!rc && s.waiting.count)
        rc = search_reads(&s, &graph->nodes[s.waiting.data[--s.waiting.count]]);
    bool cycle = !rc && bw_map_get(&s.seen, from, &found);
    bw_map_free(&s.producers);
    bw_map_free(&s.seen);
    bw_vec_free(&s.waiting);
    return cycle;
}

/* A node reads what is not there: because nothing computes it, or something that comes too late. */
static int undefined(const struct bw_onnx_checker *k, const struct scope *scope,
                     const struct bw_onnx_node *node, bw_symbol symbol)
{
    struct bw_onnx_text name = name_of(k, symbol);
    for (; scope; scope = scope->outer)
        for (uint32_t n = scope->position; n < scope->graph->node_count; n++) {
            const struct bw_onnx_node *later = &scope->graph->nodes[n];
            if (!is_output(later, symbol))
                continue;
            if (is_in_cycle(scope->graph, scope->position))
                return bw_onnx_check_fail(
                    k, node, -EBADMSG, "input '%s' is not defined before: it is part of a cycle", name.text);
            return bw_onnx_check_fail(
                k, node, -EBADMSG, "input '%s' is not defined before: its node (%s, byte %llu) comes later",
                name.text, bw_onnx_text(later->op_type).text, (unsigned long long)later->offset);
        }
    return bw_onnx_check_fail(k, node, -EBADMSG, "input '%s' is not defined anywhere", name.text);
}

static int define(const struct bw_onnx_checker *k, struct scope *scope, bw_symbol symbol)
{
    return bw_map_set(&scope->defined, symbol, 1) ? no_memory(k) : 0;
}

static int check_graph(struct bw_onnx_checker *k, struct bw_onnx_graph *graph, const struct scope *outer);

static int check_one(struct bw_onnx_checker *k, struct scope *scope, struct bw_onnx_node *node)
{
    int rc = 0;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] && !is_defined(scope, node->inputs[i]))
            return undefined(k, scope, node, node->inputs[i]);
    rc = bw_onnx_check_node(k, node);
    if (!rc)
        rc = bw_onnx_check_attribute_dtypes(k, node);
    if (!rc)
        rc = bw_onnx_check_control(k, node);
    for (uint32_t i = 0; !rc && i < node->attribute_count; i++)
        if (node->attributes[i].graph)
            rc = check_graph(k, node->attributes[i].graph, scope);
    for (uint32_t i = 0; !rc && i < node->output_count; i++) {
        if (!node->outputs[i])
            continue;
        if (is_defined(scope, node->outputs[i]))
            return bw_onnx_check_fail(k, node, -EBADMSG, "output '%s': another value has this name",
                                      name_of(k, node->outputs[i]).text);
        rc = define(k, scope, node->outputs[i]);
    }
    return rc;
}

/* ---- what a graph declares ---- */

static int value_error(const struct bw_onnx_checker *k, const struct bw_onnx_graph *graph, uint64_t offset,
                       bw_symbol symbol, const char *what)
{
    return bw_fail(k->err, -EBADMSG, "onnx", "byte %llu: value '%s' of graph '%s': %s",
                   (unsigned long long)offset, name_of(k, symbol).text, bw_onnx_text(graph->name).text, what);
}

/* Whether one value can have both types. */
static bool types_agree(const struct bw_onnx_type *a, const struct bw_onnx_type *b)
{
    if (a->kind != BW_ONNX_KIND_TENSOR || b->kind != BW_ONNX_KIND_TENSOR)
        return a->kind == b->kind || !a->kind || !b->kind;
    if (a->dtype && b->dtype && a->dtype != b->dtype)
        return false;
    if (!a->has_shape || !b->has_shape)
        return true;
    for (uint32_t i = 0; i < a->rank && a->rank == b->rank; i++)
        if (a->dims[i].value >= 0 && b->dims[i].value >= 0 && a->dims[i].value != b->dims[i].value)
            return false;
    return a->rank == b->rank;
}

static int declare(const struct bw_onnx_checker *k, struct bw_onnx_graph *graph,
                   const struct bw_onnx_value_info *info)
{
    uint64_t address;
    if (!info->symbol || info->type.kind == BW_ONNX_KIND_NONE)
        return 0;
    int rc = bw_onnx_check_type(k, graph, info);
    if (rc)
        return rc;
    if (!bw_map_get(&graph->declared, info->symbol, &address))
        return bw_map_set(&graph->declared, info->symbol, (uint64_t)(uintptr_t)&info->type) ? no_memory(k)
                                                                                            : 0;
    return types_agree((const struct bw_onnx_type *)(uintptr_t)address, &info->type)
               ? 0
               : value_error(k, graph, info->offset, info->symbol, "declared with two different types");
}

static int declare_all(const struct bw_onnx_checker *k, struct bw_onnx_graph *graph)
{
    int rc = bw_vec_push(&k->model->maps, &graph->declared) ? no_memory(k) : 0;
    for (uint32_t i = 0; !rc && i < graph->input_count; i++)
        rc = declare(k, graph, &graph->inputs[i]);
    for (uint32_t i = 0; !rc && i < graph->output_count; i++)
        rc = declare(k, graph, &graph->outputs[i]);
    for (uint32_t i = 0; !rc && i < graph->value_count; i++)
        rc = declare(k, graph, &graph->values[i]);
    return rc;
}

static int check_initializer(const struct bw_onnx_checker *k, struct scope *scope,
                             const struct bw_onnx_tensor *tensor)
{
    uint64_t address;
    const struct bw_onnx_graph *graph = scope->graph;
    if (!tensor->symbol)
        return value_error(k, graph, tensor->offset, 0, "an initializer without a name");
    if (bw_map_get(&scope->defined, tensor->symbol, &address))
        return value_error(k, graph, tensor->offset, tensor->symbol, "two initializers have this name");
    int rc = bw_onnx_check_dtype(k, graph, tensor->symbol, tensor->offset, tensor->dtype);
    if (rc)
        return rc;
    if (bw_map_get(&graph->declared, tensor->symbol, &address)) {
        struct bw_onnx_type type = {
            .kind = BW_ONNX_KIND_TENSOR, .dtype = tensor->dtype, .has_shape = true, .rank = tensor->rank};
        for (uint32_t i = 0; i < tensor->rank; i++)
            type.dims[i].value = tensor->dims[i];
        if (!types_agree((const struct bw_onnx_type *)(uintptr_t)address, &type))
            return value_error(k, graph, tensor->offset, tensor->symbol,
                               "its initializer does not have its declared type");
    }
    return define(k, scope, tensor->symbol);
}

/* Inputs: each once, and the outputs of the whole model, which its user asks for by name; a body's are taken
 * by their place. An initializer of an input's name is its default. */
static int check_once(const struct bw_onnx_checker *k, const struct bw_onnx_graph *graph,
                      const struct bw_onnx_value_info *list, uint32_t count, const char *nameless,
                      const char *twice)
{
    struct bw_map names = {0};
    int rc = 0;
    for (uint32_t i = 0; !rc && i < count; i++) {
        uint64_t ignored;
        if (!list[i].symbol)
            rc = value_error(k, graph, list[i].offset, 0, nameless);
        else if (bw_map_get(&names, list[i].symbol, &ignored))
            rc = value_error(k, graph, list[i].offset, list[i].symbol, twice);
        else if (bw_map_set(&names, list[i].symbol, 1))
            rc = no_memory(k);
    }
    bw_map_free(&names);
    return rc;
}

static int check_graph(struct bw_onnx_checker *k, struct bw_onnx_graph *graph, const struct scope *outer)
{
    struct scope scope = {.outer = outer, .graph = graph};
    int rc = declare_all(k, graph);
    if (!rc)
        rc = check_once(k, graph, graph->inputs, graph->input_count, "an input without a name",
                        "two inputs have this name");
    if (!rc && graph == &k->model->graph)
        rc = check_once(k, graph, graph->outputs, graph->output_count, "an output without a name",
                        "two outputs have this name");
    for (uint32_t i = 0; !rc && i < graph->initializer_count; i++)
        rc = check_initializer(k, &scope, &graph->initializers[i]);
    for (uint32_t i = 0; !rc && i < graph->input_count; i++)
        rc = define(k, &scope, graph->inputs[i].symbol);
    for (; !rc && scope.position < graph->node_count; scope.position++)
        rc = check_one(k, &scope, &graph->nodes[scope.position]);
    for (uint32_t i = 0; !rc && i < graph->output_count; i++)
        if (!is_defined(&scope, graph->outputs[i].symbol))
            rc = value_error(k, graph, graph->outputs[i].offset, graph->outputs[i].symbol,
                             "an output that is never computed");
    bw_map_free(&scope.defined);
    return rc;
}

static int check_functions(struct bw_onnx_checker *k)
{
    struct bw_onnx_model *model = k->model;
    int rc = 0;
    for (uint32_t i = 0; !rc && i < model->function_count; i++) {
        rc = bw_onnx_function_add(model, &model->functions[i]);
        if (rc == -EEXIST)
            return bw_fail(k->err, -EBADMSG, "onnx", "byte %llu: function '%s': another has this name",
                           (unsigned long long)model->functions[i].offset,
                           bw_onnx_text(model->functions[i].name).text);
        if (rc)
            return no_memory(k);
    }
    for (uint32_t i = 0; !rc && i < model->function_count; i++) {
        struct bw_onnx_function *function = &model->functions[i];
        k->opsets = function->opsets.count ? &function->opsets : &model->opsets;
        rc = check_opsets(k, k->opsets);
        if (!rc)
            rc = check_graph(k, &function->body, NULL);
    }
    k->opsets = &model->opsets;
    return rc;
}

/* Whoever runs a model must know what its inputs are. */
static int check_input_type(const struct bw_onnx_checker *k, const struct bw_onnx_graph *graph,
                            const struct bw_onnx_value_info *input)
{
    const struct bw_onnx_type *type = &input->type;
    while (type->kind == BW_ONNX_KIND_OPTIONAL && type->element)
        type = type->element;
    bool untyped = type->kind == BW_ONNX_KIND_NONE ||
                   (type->kind == BW_ONNX_KIND_TENSOR && type->dtype == BW_ONNX_UNDEFINED);
    for (uint32_t i = 0; untyped && i < graph->initializer_count; i++)
        untyped = graph->initializers[i].symbol != input->symbol;
    return untyped ? value_error(k, graph, input->offset, input->symbol, "an input without a type") : 0;
}

int bw_onnx_check(struct bw_onnx_model *model, struct bw_err *err)
{
    struct bw_onnx_checker k = {.model = model, .opsets = &model->opsets, .err = err};
    int rc = check_versions(&k);
    if (!rc)
        rc = check_functions(&k);
    if (!rc)
        rc = check_graph(&k, &model->graph, NULL);
    for (uint32_t i = 0; !rc && i < model->graph.input_count; i++)
        rc = check_input_type(&k, &model->graph, &model->graph.inputs[i]);
    if (!rc && !model->graph.output_count)
        rc = bw_fail(err, -EBADMSG, "onnx", "byte %llu: graph '%s' has no outputs",
                     (unsigned long long)model->graph.offset, bw_onnx_text(model->graph.name).text);
    return rc;
}
