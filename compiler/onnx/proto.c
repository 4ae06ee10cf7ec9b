/* ONNX messages from the wire: tensors, types, attributes; the rest is in proto_graph.c. Every repeated field
 * is counted, allocated once, then filled: memory is bounded by a small multiple of the file. Unknown fields
 * are skipped, as protobuf demands. */
#include "compiler/onnx/proto_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/text.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

/* Structures parsed from a file may take this many times its size (an empty NodeProto is 2 bytes, its
 * structure about 100), plus some. */
static const uint64_t STRUCTURE_BYTES_PER_BYTE = 256;
static const uint64_t STRUCTURE_BYTES_BASE = 1 << 20;

struct bw_onnx_text bw_onnx_text(struct bw_bytes bytes)
{
    static const char more[] = "...";
    struct bw_onnx_text text = {{0}};
    if (!bytes.size_bytes || bw_text_escape((const char *)bytes.data, bytes.size_bytes, text.text,
                                            sizeof text.text) < sizeof text.text)
        return text;
    /* Too long: as much as fits before the dots. */
    bw_text_escape((const char *)bytes.data, bytes.size_bytes, text.text,
                   sizeof text.text - (sizeof more - 1));
    strcat(text.text, more);
    return text;
}

bool bw_onnx_equals(struct bw_bytes bytes, const char *text)
{
    return bytes.size_bytes == strlen(text) &&
           !memcmp(bytes.data ? bytes.data : (const uint8_t *)"", text, bytes.size_bytes);
}

bool bw_onnx_same(struct bw_bytes a, struct bw_bytes b)
{
    return a.size_bytes == b.size_bytes && (!a.size_bytes || !memcmp(a.data, b.data, a.size_bytes));
}

bool bw_onnx_same_domain(struct bw_bytes a, struct bw_bytes b)
{
    struct bw_bytes none = {0};
    if (bw_onnx_equals(a, "ai.onnx"))
        a = none;
    if (bw_onnx_equals(b, "ai.onnx"))
        b = none;
    return bw_onnx_same(a, b);
}

int64_t bw_onnx_opset_of(const struct bw_onnx_opsets *opsets, struct bw_bytes domain, int64_t absent)
{
    for (uint32_t i = 0; i < opsets->count; i++)
        if (bw_onnx_same_domain(opsets->rows[i].domain, domain))
            return opsets->rows[i].version;
    return absent;
}

int bw_onnx_node_fail(const struct bw_onnx_model *model, const struct bw_onnx_node *node, int64_t opset,
                      struct bw_err *err, int code, const char *what)
{
    struct bw_bytes name = node->name;
    const char *named = "node ";
    if (!name.size_bytes && node->output_count) {
        name = model->symbols.data[node->outputs[0]];
        named = "node of output ";
    }
    const char *quote = name.size_bytes ? "'" : "";
    return bw_fail(err, code, "onnx", "byte %llu: %s%s%s%s%s(%s, opset %lld): %s",
                   (unsigned long long)node->offset, named, quote, bw_onnx_text(name).text, quote,
                   name.size_bytes ? " " : "", bw_onnx_text(node->op_type).text, (long long)opset, what);
}

bw_symbol bw_onnx_intern(struct bw_onnx_model *model, struct bw_bytes name)
{
    if (!name.size_bytes)
        return 0;
    for (uint64_t seed = 0;; seed++) { /* another seed on collision */
        uint64_t hash = XXH3_64bits_withSeed(name.data, name.size_bytes, seed), symbol;
        if (bw_map_get(&model->symbol_map, hash, &symbol)) {
            struct bw_bytes known = model->symbols.data[symbol];
            if (known.size_bytes == name.size_bytes && !memcmp(known.data, name.data, name.size_bytes))
                return (bw_symbol)symbol;
            continue;
        }
        symbol = model->symbols.count;
        if (bw_vec_push(&model->symbols, name) || bw_map_set(&model->symbol_map, hash, symbol))
            return UINT32_MAX;
        return (bw_symbol)symbol;
    }
}

static uint64_t hash_more(uint64_t hash, struct bw_bytes bytes)
{
    return bw_onnx_equals(bytes, "ai.onnx") || !bytes.size_bytes
               ? bw_hash64(hash)
               : XXH3_64bits_withSeed(bytes.data, bytes.size_bytes, hash);
}

/* The function, or NULL, and the hash under which it stands or would stand. */
static const struct bw_onnx_function *function_at(const struct bw_onnx_model *model, struct bw_bytes domain,
                                                  struct bw_bytes name, struct bw_bytes overload,
                                                  uint64_t *hash)
{
    for (uint64_t seed = 0;; seed++) { /* another seed on collision */
        uint64_t address;
        *hash = hash_more(hash_more(hash_more(seed, domain), name), overload);
        if (!bw_map_get(&model->function_map, *hash, &address))
            return NULL;
        const struct bw_onnx_function *known = (const struct bw_onnx_function *)(uintptr_t)address;
        if (bw_onnx_same_domain(known->domain, domain) && bw_onnx_same(known->name, name) &&
            bw_onnx_same(known->overload, overload))
            return known;
    }
}

const struct bw_onnx_function *bw_onnx_function_find(const struct bw_onnx_model *model,
                                                     struct bw_bytes domain, struct bw_bytes name,
                                                     struct bw_bytes overload)
{
    uint64_t hash;
    return function_at(model, domain, name, overload, &hash);
}

int bw_onnx_function_add(struct bw_onnx_model *model, const struct bw_onnx_function *function)
{
    uint64_t hash;
    if (function_at(model, function->domain, function->name, function->overload, &hash))
        return -EEXIST;
    return bw_map_set(&model->function_map, hash, (uint64_t)(uintptr_t)function);
}

int bw_onnx_parser_intern(struct bw_onnx_parser *p, struct bw_bytes name, bw_symbol *symbol)
{
    *symbol = bw_onnx_intern(p->model, name);
    return *symbol == UINT32_MAX ? bw_fail(p->err, -ENOMEM, "onnx", "names") : 0;
}

void *bw_onnx_parser_alloc(struct bw_onnx_parser *p, uint64_t count, uint64_t size_bytes)
{
    uint64_t limit = STRUCTURE_BYTES_BASE + p->model->file.size_bytes * STRUCTURE_BYTES_PER_BYTE, total;
    if (__builtin_mul_overflow(count, size_bytes, &total) || total > limit ||
        p->model->arena.used_bytes > limit - total) {
        bw_fail(p->err, -E2BIG, "onnx", "structures would take more than %llu bytes",
                (unsigned long long)limit);
        return NULL;
    }
    void *memory = bw_arena_alloc(&p->model->arena, total);
    if (!memory)
        bw_fail(p->err, -ENOMEM, "onnx", "%llu bytes of structures", (unsigned long long)total);
    return memory;
}

uint64_t bw_onnx_field_count(struct bw_wire wire, uint32_t number)
{
    struct bw_wire_field field;
    uint64_t count = 0;
    wire.err = NULL;
    while (bw_wire_next(&wire, &field) > 0)
        count += field.number == number;
    return count;
}

int bw_onnx_parser_error(const struct bw_onnx_parser *p, const struct bw_wire *wire, uint64_t offset,
                         int code, const char *what)
{
    return bw_fail(p->err, code, "onnx", "byte %llu, in %s: %s", (unsigned long long)offset, wire->message,
                   what);
}

int bw_onnx_bytes_field(const struct bw_wire *wire, const struct bw_wire_field *field, struct bw_bytes *bytes)
{
    *bytes = field->bytes;
    return bw_wire_expect(wire, field, BW_WIRE_BYTES);
}

int bw_onnx_int_field(const struct bw_wire *wire, const struct bw_wire_field *field, int64_t *value)
{
    *value = (int64_t)field->value;
    return bw_wire_expect(wire, field, BW_WIRE_VARINT);
}

/* ---- tensors ---- */

enum {
    TENSOR_DIMS = 1,
    TENSOR_DTYPE = 2,
    TENSOR_SEGMENT = 3,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14
};

static int dims_add(const struct bw_onnx_parser *p, const struct bw_wire *wire, uint64_t offset,
                    struct bw_onnx_tensor *tensor, uint64_t value)
{
    if (tensor->rank == BW_TENSOR_RANK_MAX)
        return bw_onnx_parser_error(p, wire, offset, -E2BIG, "a tensor of more than 16 dimensions");
    int64_t dim = (int64_t)value;
    if (dim < 0 || dim >> BW_ONNX_DIM_MAX_LOG2 ||
        (dim && __builtin_mul_overflow(tensor->elements, dim, &tensor->elements)) ||
        tensor->elements >> BW_ONNX_DIM_MAX_LOG2)
        return bw_onnx_parser_error(p, wire, offset, -EBADMSG,
                                    "a tensor's dimension is negative, or more than 2^40 elements");
    tensor->elements = dim ? tensor->elements : 0;
    tensor->dims[tensor->rank++] = dim;
    return 0;
}

static int tensor_dims(const struct bw_onnx_parser *p, const struct bw_wire *wire,
                       const struct bw_wire_field *field, struct bw_onnx_tensor *tensor)
{
    if (field->type == BW_WIRE_VARINT)
        return dims_add(p, wire, field->offset, tensor, field->value);
    int rc = bw_wire_expect(wire, field, BW_WIRE_BYTES);
    const uint8_t *at = field->bytes.data, *end = rc ? at : at + field->bytes.size_bytes;
    while (at < end && !rc) {
        uint64_t value;
        rc = bw_wire_varint(&at, end, &value)
                 ? bw_onnx_parser_error(p, wire, field->offset, -EBADMSG, "a dimension is cut off")
                 : dims_add(p, wire, field->offset, tensor, value);
    }
    return rc;
}

static int decimal(const struct bw_wire *wire, struct bw_bytes bytes, uint64_t *number)
{
    uint64_t value = 0;
    bool good = bytes.size_bytes > 0;
    for (uint64_t i = 0; i < bytes.size_bytes && good; i++) {
        good = bytes.data[i] >= '0' && bytes.data[i] <= '9' && value <= UINT64_MAX / 10 - 1;
        value = value * 10 + (bytes.data[i] - '0');
    }
    *number = value;
    return good ? 0
                : bw_fail(wire->err, -EBADMSG, "onnx",
                          "byte %llu: offset or length of external data is no number",
                          (unsigned long long)(bytes.data - wire->file));
}

/* StringStringEntryProto of external_data */
static int tensor_external(const struct bw_wire *outer, struct bw_bytes bytes, struct bw_onnx_tensor *tensor)
{
    struct bw_wire wire = bw_wire_inside(outer, bytes, "external_data");
    struct bw_wire_field field;
    struct bw_bytes key = {0}, value = {0};
    int rc;
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        rc = field.number == 1   ? bw_onnx_bytes_field(&wire, &field, &key)
             : field.number == 2 ? bw_onnx_bytes_field(&wire, &field, &value)
                                 : 0;
        if (rc)
            return rc;
    }
    if (bw_onnx_equals(key, "location"))
        tensor->location = value;
    if (bw_onnx_equals(key, "offset"))
        rc = decimal(&wire, value, &tensor->external_offset);
    if (!rc && bw_onnx_equals(key, "length")) {
        rc = decimal(&wire, value, &tensor->external_bytes);
        tensor->external_bytes_given = true;
    }
    return rc;
}

static int tensor_field(const struct bw_onnx_parser *p, const struct bw_wire *wire,
                        const struct bw_wire_field *field, struct bw_onnx_tensor *tensor)
{
    int64_t location;
    int rc;
    switch (field->number) {
    case TENSOR_DIMS:
        return tensor_dims(p, wire, field, tensor);
    case TENSOR_DTYPE:
        return bw_onnx_int_field(wire, field, &tensor->dtype);
    case TENSOR_SEGMENT:
        return bw_onnx_parser_error(p, wire, field->offset, -ENOTSUP, "a tensor in segments");
    case TENSOR_NAME:
        return bw_onnx_bytes_field(wire, field, &tensor->name);
    case TENSOR_RAW:
        tensor->has_raw = true;
        return bw_onnx_bytes_field(wire, field, &tensor->raw);
    case TENSOR_EXTERNAL:
        rc = bw_wire_expect(wire, field, BW_WIRE_BYTES);
        return rc ? rc : tensor_external(wire, field->bytes, tensor);
    case TENSOR_LOCATION:
        rc = bw_onnx_int_field(wire, field, &location);
        tensor->external = location == 1;
        return rc || location == 0 || location == 1
                   ? rc
                   : bw_onnx_parser_error(p, wire, field->offset, -ENOTSUP,
                                          "unknown location of a tensor's data");
    case BW_ONNX_FLOAT_DATA:
    case BW_ONNX_INT32_DATA:
    case BW_ONNX_STRING_DATA:
    case BW_ONNX_INT64_DATA:
    case BW_ONNX_DOUBLE_DATA:
    case BW_ONNX_UINT64_DATA:
        if (field->type != BW_WIRE_BYTES || field->bytes.size_bytes || field->number == BW_ONNX_STRING_DATA)
            tensor->typed |= 1u << field->number;
        return 0;
    default:
        return 0;
    }
}

int bw_onnx_read_tensor(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                        struct bw_onnx_tensor *tensor)
{
    struct bw_wire wire = bw_wire_inside(outer, bytes, "TensorProto");
    struct bw_wire_field field;
    int rc;
    *tensor = (struct bw_onnx_tensor){
        .elements = 1, .message = bytes, .offset = (uint64_t)(bytes.data - wire.file)};
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        rc = tensor_field(p, &wire, &field, tensor);
        if (rc)
            return rc;
    }
    return rc || !p->model ? rc : bw_onnx_parser_intern(p, tensor->name, &tensor->symbol);
}

int bw_onnx_parse_tensor(struct bw_bytes file, struct bw_bytes message, struct bw_onnx_tensor *tensor,
                         struct bw_err *err)
{
    struct bw_onnx_parser p = {.err = err};
    struct bw_wire outer = {
        .file = file.data, .at = file.data, .end = file.data + file.size_bytes, .err = err};
    return bw_onnx_read_tensor(&p, &outer, message, tensor);
}

/* ---- types ---- */

static int parse_dim(const struct bw_wire *outer, struct bw_bytes bytes, struct bw_onnx_dim *dim)
{
    struct bw_wire wire = bw_wire_inside(outer, bytes, "TensorShapeProto.Dimension");
    struct bw_wire_field field;
    int rc;
    *dim = (struct bw_onnx_dim){.value = -1};
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        rc = field.number == 1   ? bw_onnx_int_field(&wire, &field, &dim->value)
             : field.number == 2 ? bw_onnx_bytes_field(&wire, &field, &dim->symbol)
                                 : 0;
        if (rc)
            return rc;
    }
    if (dim->value < 0)
        dim->value = -1;
    return rc;
}

static int parse_shape(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                       struct bw_onnx_type *type)
{
    struct bw_wire wire = bw_wire_inside(outer, bytes, "TensorShapeProto");
    struct bw_wire_field field;
    int rc;
    type->has_shape = true;
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        if (field.number != 1)
            continue;
        if (type->rank == BW_TENSOR_RANK_MAX)
            return bw_onnx_parser_error(p, &wire, field.offset, -E2BIG, "a type of more than 16 dimensions");
        rc = bw_wire_expect(&wire, &field, BW_WIRE_BYTES);
        if (!rc)
            rc = parse_dim(&wire, field.bytes, &type->dims[type->rank++]);
        if (rc)
            return rc;
    }
    return rc;
}

static int parse_tensor_type(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                             struct bw_onnx_type *type)
{
    struct bw_wire wire = bw_wire_inside(outer, bytes, "TypeProto.Tensor");
    struct bw_wire_field field;
    int rc;
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        if (field.number == 1)
            rc = bw_onnx_int_field(&wire, &field, &type->dtype);
        else if (field.number == 2)
            rc = bw_wire_expect(&wire, &field, BW_WIRE_BYTES) ? -EBADMSG
                                                              : parse_shape(p, &wire, field.bytes, type);
        else
            rc = 0;
        if (rc)
            return rc;
    }
    return rc;
}

static int parse_type(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                      struct bw_onnx_type *type);

/* TypeProto.Sequence and TypeProto.Optional: field 1 is the element's type. */
static int parse_element_type(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                              struct bw_onnx_type *type)
{
    struct bw_wire wire = bw_wire_inside(outer, bytes, "TypeProto.Sequence");
    struct bw_wire_field field;
    int rc;
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        if (field.number != 1)
            continue;
        type->element = bw_onnx_parser_alloc(p, 1, sizeof *type->element);
        if (!type->element)
            return -ENOMEM;
        rc = bw_wire_expect(&wire, &field, BW_WIRE_BYTES);
        if (!rc)
            rc = parse_type(p, &wire, field.bytes, type->element);
        if (rc)
            return rc;
    }
    return rc;
}

int bw_onnx_parser_deeper(struct bw_onnx_parser *p, const struct bw_wire *wire, uint64_t offset)
{
    if (p->depth == BW_ONNX_NESTING_MAX) {
        int rc = bw_onnx_parser_error(p, wire, offset, -E2BIG, "nested too deep");
        bw_err_expected(p->err, "graphs and types at most %d deep", BW_ONNX_NESTING_MAX);
        return rc;
    }
    p->depth++;
    return 0;
}

static int parse_type(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                      struct bw_onnx_type *type)
{
    enum { TENSOR = 1, SEQUENCE = 4, MAP = 5, SPARSE = 8, OPTIONAL = 9 };
    struct bw_wire wire = bw_wire_inside(outer, bytes, "TypeProto");
    struct bw_wire_field field;
    int rc = bw_onnx_parser_deeper(p, &wire, (uint64_t)(bytes.data - wire.file));
    if (rc)
        return rc;
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        bool known = field.number == TENSOR || field.number == SEQUENCE || field.number == OPTIONAL;
        if (field.number == MAP || field.number == SPARSE)
            type->kind = BW_ONNX_KIND_OTHER;
        rc = known ? bw_wire_expect(&wire, &field, BW_WIRE_BYTES) : 0;
        if (!rc && field.number == TENSOR) {
            type->kind = BW_ONNX_KIND_TENSOR;
            rc = parse_tensor_type(p, &wire, field.bytes, type);
        } else if (!rc && known) {
            type->kind = field.number == SEQUENCE ? BW_ONNX_KIND_SEQUENCE : BW_ONNX_KIND_OPTIONAL;
            rc = parse_element_type(p, &wire, field.bytes, type);
        }
        if (rc)
            break;
    }
    p->depth--;
    return rc;
}

int bw_onnx_read_value_info(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                            struct bw_onnx_value_info *info)
{
    struct bw_wire wire = bw_wire_inside(outer, bytes, "ValueInfoProto");
    struct bw_wire_field field;
    struct bw_bytes name = {0};
    int rc;
    info->offset = (uint64_t)(bytes.data - wire.file);
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        if (field.number == 1)
            rc = bw_onnx_bytes_field(&wire, &field, &name);
        else if (field.number == 2)
            rc = bw_wire_expect(&wire, &field, BW_WIRE_BYTES)
                     ? -EBADMSG
                     : parse_type(p, &wire, field.bytes, &info->type);
        else
            rc = 0;
        if (rc)
            return rc;
    }
    return rc ? rc : bw_onnx_parser_intern(p, name, &info->symbol);
}

/* ---- attributes ---- */

enum {
    ATTR_NAME = 1,
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_T = 5,
    ATTR_G = 6,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_STRINGS = 9,
    ATTR_TYPE = 20,
    ATTR_REFERENCE = 21,
};

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Numbers in packed and unpacked occurrences of a field. */
static uint64_t number_count(struct bw_wire wire, uint32_t number, bool is_float)
{
    struct bw_wire_field field;
    uint64_t count = 0;
    wire.err = NULL;
    while (bw_wire_next(&wire, &field) > 0)
        if (field.number == number)
            count += field.type != BW_WIRE_BYTES ? 1
                     : is_float                  ? field.bytes.size_bytes / 4
                                                 : bw_wire_varint_count(field.bytes);
    return count;
}

static int ints_add(struct bw_onnx_parser *p, const struct bw_wire *wire, const struct bw_wire_field *field,
                    struct bw_onnx_attribute *attr)
{
    if (field->type == BW_WIRE_VARINT) {
        attr->ints[attr->count++] = (int64_t)field->value;
        return 0;
    }
    int rc = bw_wire_expect(wire, field, BW_WIRE_BYTES);
    const uint8_t *at = field->bytes.data, *end = rc ? at : at + field->bytes.size_bytes;
    while (at < end && !rc) {
        uint64_t value;
        rc = bw_wire_varint(&at, end, &value)
                 ? bw_onnx_parser_error(p, wire, field->offset, -EBADMSG, "a number is cut off")
                 : 0;
        if (!rc)
            attr->ints[attr->count++] = (int64_t)value;
    }
    return rc;
}

static int floats_add(struct bw_onnx_parser *p, const struct bw_wire *wire, const struct bw_wire_field *field,
                      struct bw_onnx_attribute *attr)
{
    if (field->type == BW_WIRE_FIXED32) {
        attr->floats[attr->count++] = float_of((uint32_t)field->value);
        return 0;
    }
    int rc = bw_wire_expect(wire, field, BW_WIRE_BYTES);
    if (!rc && field->bytes.size_bytes % 4)
        rc = bw_onnx_parser_error(p, wire, field->offset, -EBADMSG, "packed floats are cut off");
    for (uint64_t i = 0; !rc && i < field->bytes.size_bytes; i += 4)
        memcpy(&attr->floats[attr->count++], field->bytes.data + i, 4);
    return rc;
}

/* Lists: the array is allocated at the first occurrence, large enough for all. */
static int list_field(struct bw_onnx_parser *p, const struct bw_wire *whole, const struct bw_wire *wire,
                      const struct bw_wire_field *field, struct bw_onnx_attribute *attr)
{
    switch (field->number) {
    case ATTR_INTS:
        if (!attr->ints && !(attr->ints = bw_onnx_parser_alloc(p, number_count(*whole, ATTR_INTS, false),
                                                               sizeof *attr->ints)))
            return -ENOMEM;
        return ints_add(p, wire, field, attr);
    case ATTR_FLOATS:
        if (!attr->floats && !(attr->floats = bw_onnx_parser_alloc(p, number_count(*whole, ATTR_FLOATS, true),
                                                                   sizeof *attr->floats)))
            return -ENOMEM;
        return floats_add(p, wire, field, attr);
    default:
        if (!attr->strings && !(attr->strings = bw_onnx_parser_alloc(
                                    p, bw_onnx_field_count(*whole, ATTR_STRINGS), sizeof *attr->strings)))
            return -ENOMEM;
        return bw_onnx_bytes_field(wire, field, &attr->strings[attr->count++]);
    }
}

static int attribute_field(struct bw_onnx_parser *p, const struct bw_wire *whole, const struct bw_wire *wire,
                           const struct bw_wire_field *field, struct bw_onnx_attribute *attr, int64_t *type)
{
    int rc;
    switch (field->number) {
    case ATTR_NAME:
        return bw_onnx_bytes_field(wire, field, &attr->name);
    case ATTR_F:
        attr->f = float_of((uint32_t)field->value);
        return bw_wire_expect(wire, field, BW_WIRE_FIXED32);
    case ATTR_I:
        return bw_onnx_int_field(wire, field, &attr->i);
    case ATTR_S:
        return bw_onnx_bytes_field(wire, field, &attr->s);
    case ATTR_T:
        if (!(attr->tensor = bw_onnx_parser_alloc(p, 1, sizeof *attr->tensor)))
            return -ENOMEM;
        rc = bw_wire_expect(wire, field, BW_WIRE_BYTES);
        return rc ? rc : bw_onnx_read_tensor(p, wire, field->bytes, attr->tensor);
    case ATTR_G:
        if (!(attr->graph = bw_onnx_parser_alloc(p, 1, sizeof *attr->graph)))
            return -ENOMEM;
        rc = bw_wire_expect(wire, field, BW_WIRE_BYTES);
        return rc ? rc : bw_onnx_read_graph(p, wire, field->bytes, attr->graph);
    case ATTR_FLOATS:
    case ATTR_INTS:
    case ATTR_STRINGS:
        return list_field(p, whole, wire, field, attr);
    case ATTR_TYPE:
        return bw_onnx_int_field(wire, field, type);
    case ATTR_REFERENCE:
        return bw_onnx_bytes_field(wire, field, &attr->reference);
    default:
        return 0;
    }
}

/* Files before IR version 3 do not say the type: the field that is there tells. */
static enum bw_onnx_attribute_type type_from_field(uint32_t number)
{
    static const enum bw_onnx_attribute_type types[] = {
        [ATTR_F] = BW_ONNX_ATTR_FLOAT,   [ATTR_I] = BW_ONNX_ATTR_INT,
        [ATTR_S] = BW_ONNX_ATTR_STRING,  [ATTR_T] = BW_ONNX_ATTR_TENSOR,
        [ATTR_G] = BW_ONNX_ATTR_GRAPH,   [ATTR_FLOATS] = BW_ONNX_ATTR_FLOATS,
        [ATTR_INTS] = BW_ONNX_ATTR_INTS, [ATTR_STRINGS] = BW_ONNX_ATTR_STRINGS};
    return number < sizeof types / sizeof types[0] ? types[number] : BW_ONNX_ATTR_NONE;
}

int bw_onnx_read_attribute(struct bw_onnx_parser *p, const struct bw_wire *outer, struct bw_bytes bytes,
                           struct bw_onnx_attribute *attr)
{
    struct bw_wire whole = bw_wire_inside(outer, bytes, "AttributeProto"), wire = whole;
    struct bw_wire_field field;
    enum bw_onnx_attribute_type found = BW_ONNX_ATTR_NONE;
    int64_t type = 0;
    int rc;
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        enum bw_onnx_attribute_type from_field = type_from_field(field.number);
        if (from_field && found && found != from_field) /* one count serves one list */
            return bw_onnx_parser_error(p, &wire, field.offset, -EBADMSG,
                                        "an attribute has two kinds of value");
        if (from_field)
            found = from_field;
        rc = attribute_field(p, &whole, &wire, &field, attr, &type);
        if (rc)
            return rc;
    }
    if (type < 0 || type > BW_ONNX_ATTR_TYPES)
        return bw_onnx_parser_error(p, &wire, (uint64_t)(bytes.data - wire.file), -EBADMSG,
                                    "unknown attribute type");
    attr->type = type ? (enum bw_onnx_attribute_type)type : found;
    bool missing = (attr->type == BW_ONNX_ATTR_TENSOR && !attr->tensor) ||
                   (attr->type == BW_ONNX_ATTR_GRAPH && !attr->graph) || (found && attr->type != found);
    if (!rc && missing && !attr->reference.size_bytes)
        return bw_onnx_parser_error(p, &wire, (uint64_t)(bytes.data - wire.file), -EBADMSG,
                                    "an attribute's value does not have its type");
    return rc;
}
