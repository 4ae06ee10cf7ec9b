/* Writes small ONNX models for tests: the protobuf wire format, and nothing else. Field numbers are
 * onnx.proto's. */
#ifndef BW_TESTS_ONNX_WRITER_H
#define BW_TESTS_ONNX_WRITER_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct pb {
    uint8_t data[1 << 15];
    size_t size_bytes;
};

static inline void pb_byte(struct pb *pb, uint8_t byte)
{
    assert(pb->size_bytes < sizeof pb->data);
    pb->data[pb->size_bytes++] = byte;
}

static inline void pb_varint(struct pb *pb, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        pb_byte(pb, (uint8_t)(value | 0x80));
    pb_byte(pb, (uint8_t)value);
}

static inline void pb_int(struct pb *pb, uint32_t field, int64_t value)
{
    pb_varint(pb, field << 3);
    pb_varint(pb, (uint64_t)value);
}

static inline void pb_float(struct pb *pb, uint32_t field, float value)
{
    uint8_t bytes[4];
    memcpy(bytes, &value, 4);
    pb_varint(pb, field << 3 | 5);
    for (int i = 0; i < 4; i++)
        pb_byte(pb, bytes[i]);
}

static inline void pb_bytes(struct pb *pb, uint32_t field, const void *data, size_t size_bytes)
{
    pb_varint(pb, field << 3 | 2);
    pb_varint(pb, size_bytes);
    for (size_t i = 0; i < size_bytes; i++)
        pb_byte(pb, ((const uint8_t *)data)[i]);
}

static inline void pb_text(struct pb *pb, uint32_t field, const char *text)
{
    pb_bytes(pb, field, text, strlen(text));
}

static inline void pb_message(struct pb *pb, uint32_t field, const struct pb *inner)
{
    pb_bytes(pb, field, inner->data, inner->size_bytes);
}

/* Each name of a list "a,b,,c" as one field; the empty list has none. */
static inline void pb_names(struct pb *pb, uint32_t field, const char *list)
{
    while (*list) {
        size_t length = strcspn(list, ",");
        pb_bytes(pb, field, list, length);
        list += length;
        if (*list == ',' && !*++list)
            pb_bytes(pb, field, "", 0);
    }
}

enum { PB_FLOAT = 1, PB_UINT8 = 2, PB_INT64 = 7, PB_STRING = 8, PB_BOOL = 9 };

/* TensorProto with raw data. */
static inline struct pb pb_tensor(const char *name, int dtype, uint32_t rank, const int64_t *dims,
                                  const void *raw, size_t size_bytes)
{
    struct pb tensor = {.size_bytes = 0};
    for (uint32_t i = 0; i < rank; i++)
        pb_int(&tensor, 1, dims[i]);
    pb_int(&tensor, 2, dtype);
    pb_text(&tensor, 8, name);
    pb_bytes(&tensor, 9, raw, size_bytes);
    return tensor;
}

/* ValueInfoProto of a tensor; dims is "1,3,N": numbers or symbols. */
static inline struct pb pb_value(const char *name, int dtype, const char *dims)
{
    struct pb shape = {.size_bytes = 0}, tensor = {.size_bytes = 0}, type = {.size_bytes = 0},
              value = {.size_bytes = 0};
    while (*dims) {
        struct pb dim = {.size_bytes = 0};
        size_t length = strcspn(dims, ",");
        if (*dims >= '0' && *dims <= '9') {
            int64_t size = 0;
            for (size_t i = 0; i < length; i++)
                size = size * 10 + (dims[i] - '0');
            pb_int(&dim, 1, size);
        } else {
            pb_bytes(&dim, 2, dims, length);
        }
        pb_message(&shape, 1, &dim);
        dims += length + (dims[length] == ',');
    }
    pb_int(&tensor, 1, dtype);
    pb_message(&tensor, 2, &shape);
    pb_message(&type, 1, &tensor);
    pb_text(&value, 1, name);
    pb_message(&value, 2, &type);
    return value;
}

static inline void pb_attribute_int(struct pb *attributes, const char *name, int64_t value)
{
    struct pb attribute = {.size_bytes = 0};
    pb_text(&attribute, 1, name);
    pb_int(&attribute, 3, value);
    pb_int(&attribute, 20, 2);
    pb_message(attributes, 5, &attribute);
}

static inline void pb_attribute_graph(struct pb *attributes, const char *name, const struct pb *graph)
{
    struct pb attribute = {.size_bytes = 0};
    pb_text(&attribute, 1, name);
    pb_message(&attribute, 6, graph);
    pb_int(&attribute, 20, 5);
    pb_message(attributes, 5, &attribute);
}

static inline void pb_attribute_tensor(struct pb *attributes, const char *name, const struct pb *tensor)
{
    struct pb attribute = {.size_bytes = 0};
    pb_text(&attribute, 1, name);
    pb_message(&attribute, 5, tensor);
    pb_int(&attribute, 20, 4);
    pb_message(attributes, 5, &attribute);
}

/* Appends a NodeProto; attributes may be NULL. Its name is its op type in lower case with an underscore. */
static inline void pb_node(struct pb *graph, const char *op_type, const char *inputs, const char *outputs,
                           const struct pb *attributes)
{
    struct pb node = {.size_bytes = 0};
    char name[64] = "my_";
    strncat(name, op_type, sizeof name - 8);
    pb_names(&node, 1, inputs);
    pb_names(&node, 2, outputs);
    pb_text(&node, 3, name);
    pb_text(&node, 4, op_type);
    for (size_t i = 0; attributes && i < attributes->size_bytes; i++)
        pb_byte(&node, attributes->data[i]);
    pb_message(graph, 1, &node);
}

static inline void pb_graph_input(struct pb *graph, const char *name, int dtype, const char *dims)
{
    struct pb value = pb_value(name, dtype, dims);
    pb_message(graph, 11, &value);
}

static inline void pb_graph_output(struct pb *graph, const char *name, int dtype, const char *dims)
{
    struct pb value = pb_value(name, dtype, dims);
    pb_message(graph, 12, &value);
}

static inline struct pb pb_model(const struct pb *graph, int64_t opset)
{
    struct pb model = {.size_bytes = 0}, import = {.size_bytes = 0};
    pb_int(&import, 2, opset);
    pb_int(&model, 1, 8);
    pb_message(&model, 8, &import);
    pb_message(&model, 7, graph);
    return model;
}

#endif
