/* A node against the function that it calls, or what ONNX says of its op: how many inputs and outputs, which
 * of them must be there, and its attributes. */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/check.h"
#include "compiler/onnx/schema.h"

/* ---- inputs and outputs ---- */

static int check_count(const struct bw_onnx_checker *k, const struct bw_onnx_node *node, const char *what,
                       uint32_t count, uint32_t least, uint32_t most)
{
    if (count >= least && count <= most)
        return 0;
    if (most == UINT32_MAX)
        return bw_onnx_check_fail(k, node, -EBADMSG, "%u %s, but the op has at least %u", count, what, least);
    if (least == most)
        return bw_onnx_check_fail(k, node, -EBADMSG, "%u %s, but the op has %u", count, what, most);
    return bw_onnx_check_fail(k, node, -EBADMSG, "%u %s, but the op has %u to %u", count, what, least, most);
}

/* Names against a list of parameters. */
static int check_parameters(const struct bw_onnx_checker *k, const struct bw_onnx_node *node,
                            const char *what, const bw_symbol *names, uint32_t count, const char *parameters,
                            uint32_t least)
{
    struct bw_onnx_word word = {0};
    uint32_t most = 0, missing = UINT32_MAX;
    for (const char *at = parameters; most < UINT32_MAX && bw_onnx_word_next(&at, &word); most++) {
        if (word.mark == '*' || word.mark == '~') {
            most = UINT32_MAX;
            break;
        }
        if (!word.mark && most < count && !names[most] && missing == UINT32_MAX)
            missing = most;
    }
    int rc = check_count(k, node, what, count, least, most);
    if (!rc && missing != UINT32_MAX)
        rc = bw_onnx_check_fail(k, node, -EBADMSG, "one of its %s, number %u, is missing", what, missing);
    return rc;
}

/* ---- attributes ---- */

static bool attribute_find(const char *attributes, struct bw_bytes name, struct bw_onnx_word *word)
{
    for (const char *at = attributes; bw_onnx_word_next(&at, word);)
        if (word->length == name.size_bytes && !memcmp(word->name, name.data, word->length))
            return true;
    return false;
}

static enum bw_onnx_attribute_type type_of_kind(char kind)
{
    static const char kinds[] = {
        [BW_ONNX_ATTR_FLOAT] = 'f',         [BW_ONNX_ATTR_INT] = 'i',     [BW_ONNX_ATTR_STRING] = 's',
        [BW_ONNX_ATTR_TENSOR] = 't',        [BW_ONNX_ATTR_GRAPH] = 'g',   [BW_ONNX_ATTR_FLOATS] = 'F',
        [BW_ONNX_ATTR_INTS] = 'I',          [BW_ONNX_ATTR_STRINGS] = 'S', [BW_ONNX_ATTR_TENSORS] = 0,
        [BW_ONNX_ATTR_SPARSE_TENSOR] = 'p', [BW_ONNX_ATTR_TYPE] = 'y'};
    const char *at = memchr(kinds, kind, sizeof kinds);
    return at ? (enum bw_onnx_attribute_type)(at - kinds) : BW_ONNX_ATTR_NONE;
}

static const char *type_name(enum bw_onnx_attribute_type type)
{
    static const char *const names[] = {"no value",
                                        "a float",
                                        "an int",
                                        "a string",
                                        "a tensor",
                                        "a graph",
                                        "a list of floats",
                                        "a list of ints",
                                        "a list of strings",
                                        "a list of tensors",
                                        "a list of graphs",
                                        "a sparse tensor",
                                        "a list of sparse tensors",
                                        "a type",
                                        "a list of types"};
    return names[type];
}

static int check_twice(const struct bw_onnx_checker *k, const struct bw_onnx_node *node)
{
    struct bw_map names = {0};
    int rc = 0;
    for (uint32_t i = 0; !rc && i < node->attribute_count && node->attribute_count > 1; i++) {
        uint64_t ignored;
        bw_symbol name = bw_onnx_intern(k->model, node->attributes[i].name);
        if (name == UINT32_MAX)
            rc = bw_fail(k->err, -ENOMEM, "onnx", "names of attributes");
        else if (bw_map_get(&names, name, &ignored))
            rc = bw_onnx_check_fail(k, node, -EBADMSG, "attribute '%s' is there twice",
                                    bw_onnx_text(node->attributes[i].name).text);
        else if (bw_map_set(&names, name, 1))
            rc = bw_fail(k->err, -ENOMEM, "onnx", "names of attributes");
    }
    bw_map_free(&names);
    return rc;
}

static int check_attributes(const struct bw_onnx_checker *k, const struct bw_onnx_node *node,
                            const char *attributes)
{
    struct bw_onnx_word word = {0};
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const struct bw_onnx_attribute *attribute = &node->attributes[i];
        if (!attribute_find(attributes, attribute->name, &word))
            return bw_onnx_check_fail(k, node, -EBADMSG, "the op has no attribute '%s'",
                                      bw_onnx_text(attribute->name).text);
        if (attribute->type != type_of_kind(word.kind))
            return bw_onnx_check_fail(k, node, -EBADMSG, "attribute '%s' is %s instead of %s",
                                      bw_onnx_text(attribute->name).text, type_name(attribute->type),
                                      type_name(type_of_kind(word.kind)));
    }
    for (const char *at = attributes; bw_onnx_word_next(&at, &word);) {
        struct bw_onnx_text name = bw_onnx_text((struct bw_bytes){(const uint8_t *)word.name, word.length});
        if (word.mark == '!' && !bw_onnx_check_attribute(node, name.text))
            return bw_onnx_check_fail(k, node, -EBADMSG, "attribute '%s' is missing", name.text);
    }
    return 0;
}

/* ---- words ---- */

/* Attributes that are one of a few words. op NULL: of every op. Older versions know fewer of them; the newer
 * ones mean nothing else there. */
static const struct {
    const char *op, *attribute, *words;
} words[] = {
    {NULL, "auto_pad", "NOTSET SAME_UPPER SAME_LOWER VALID"},
    {NULL, "round_mode", "up down nearest"},
    {"BitShift", "direction", "LEFT RIGHT"},
    {"DepthToSpace", "mode", "DCR CRD"},
    {"Gelu", "approximate", "none tanh"},
    {"GridSample", "mode", "bilinear linear nearest bicubic cubic"},
    {"GridSample", "padding_mode", "zeros border reflection"},
    {"GRU", "direction", "forward reverse bidirectional"},
    {"LSTM", "direction", "forward reverse bidirectional"},
    {"RNN", "direction", "forward reverse bidirectional"},
    {"Momentum", "mode", "standard nesterov"},
    {"NegativeLogLikelihoodLoss", "reduction", "none sum mean"},
    {"SoftmaxCrossEntropyLoss", "reduction", "none sum mean"},
    {"Pad", "mode", "constant reflect edge wrap"},
    {"Resize", "coordinate_transformation_mode",
     "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_half_pixel_for_nn "
     "tf_crop_and_resize"},
    {"Resize", "keep_aspect_ratio_policy", "stretch not_larger not_smaller"},
    {"Resize", "mode", "nearest linear cubic"},
    {"Resize", "nearest_mode", "round_prefer_floor round_prefer_ceil floor ceil"},
    {"Upsample", "mode", "nearest linear bilinear"},
    {"RoiAlign", "mode", "avg max"},
    {"RoiAlign", "coordinate_transformation_mode", "half_pixel output_half_pixel"},
    {"ScatterElements", "reduction", "none add mul max min"},
    {"ScatterND", "reduction", "none add mul max min"},
    {"StringNormalizer", "case_change_action", "NONE LOWER UPPER"},
    {"TfIdfVectorizer", "mode", "TF IDF TFIDF"},
};

static int check_words(const struct bw_onnx_checker *k, const struct bw_onnx_node *node,
                       const struct bw_onnx_attribute *attribute)
{
    struct bw_onnx_word word;
    for (size_t i = 0; i < BW_COUNT_OF(words); i++) {
        if ((words[i].op && !bw_onnx_equals(node->op_type, words[i].op)) ||
            !bw_onnx_equals(attribute->name, words[i].attribute))
            continue;
        if (!attribute_find(words[i].words, attribute->s, &word))
            return bw_onnx_check_fail(k, node, -EBADMSG, "attribute '%s' is '%s', none of %s",
                                      words[i].attribute, bw_onnx_text(attribute->s).text, words[i].words);
    }
    return 0;
}

/* ---- nodes ---- */

static int check_function(const struct bw_onnx_checker *k, const struct bw_onnx_node *node)
{
    const struct bw_onnx_graph *body = &node->function->body;
    int rc = check_count(k, node, "inputs", node->input_count, 0, body->input_count);
    return rc ? rc : check_count(k, node, "outputs", node->output_count, 0, body->output_count);
}

static int check_schema(const struct bw_onnx_checker *k, const struct bw_onnx_node *node)
{
    const struct bw_onnx_schema *schema = node->schema;
    if (!schema->inputs)
        return bw_onnx_check_fail(k, node, -ENOTSUP, "the op was removed in opset %u", schema->since);
    int rc = check_parameters(k, node, "inputs", node->inputs, node->input_count, schema->inputs,
                              schema->inputs_min);
    if (!rc)
        rc = check_parameters(k, node, "outputs", node->outputs, node->output_count, schema->outputs,
                              schema->outputs_min);
    if (!rc)
        rc = check_attributes(k, node, schema->attributes);
    for (uint32_t i = 0; !rc && i < node->attribute_count; i++)
        if (node->attributes[i].type == BW_ONNX_ATTR_STRING && !node->attributes[i].reference.size_bytes)
            rc = check_words(k, node, &node->attributes[i]);
    return rc;
}

int bw_onnx_check_node(struct bw_onnx_checker *k, struct bw_onnx_node *node)
{
    int64_t absent = k->model->ir_version < BW_ONNX_IR_VERSION_OPSETS ? 1 : -1;
    int64_t opset = bw_onnx_opset_of(k->opsets, node->domain, absent);
    struct bw_bytes standard = {0};
    bool known = false;
    if (!node->op_type.size_bytes)
        return bw_onnx_check_fail(k, node, -EBADMSG, "a node without op");
    int rc = check_twice(k, node);
    node->function = bw_onnx_function_find(k->model, node->domain, node->op_type, node->overload);
    if (rc || node->function)
        return rc ? rc : check_function(k, node);
    if (opset < 0)
        return bw_onnx_check_fail(k, node, -EBADMSG, "opset_import does not name its domain '%s'",
                                  bw_onnx_text(node->domain).text);
    if (bw_onnx_same_domain(node->domain, standard) ||
        bw_onnx_equals(node->domain, "ai.onnx.preview.training"))
        node->schema = bw_onnx_schema_find(node->op_type, opset, &known);
    if (known && !node->schema)
        return bw_onnx_check_fail(k, node, -ENOTSUP, "the op does not exist in this opset");
    return node->schema ? check_schema(k, node) : 0;
}
