#include "compiler/onnx/wire.h"

#include <errno.h>
#include <string.h>

enum { VARINT_BYTES_MAX = 10 }; /* 64 bits in groups of seven */

int bw_wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    uint64_t result = 0;
    for (int i = 0; i < VARINT_BYTES_MAX && *at < end; i++) {
        uint8_t byte = *(*at)++;
        result |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            *value = result;
            return 0;
        }
    }
    return -EBADMSG;
}

uint64_t bw_wire_varint_count(struct bw_bytes bytes)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < bytes.size_bytes; i++)
        count += !(bytes.data[i] & 0x80) || i + 1 == bytes.size_bytes;
    return count;
}

struct bw_wire bw_wire_inside(const struct bw_wire *wire, struct bw_bytes bytes, const char *message)
{
    return (struct bw_wire){.file = wire->file,
                            .at = bytes.data,
                            .end = bytes.data + bytes.size_bytes,
                            .message = message,
                            .err = wire->err};
}

static int damaged(const struct bw_wire *wire, const uint8_t *at, const char *what)
{
    int rc = bw_fail(wire->err, -EBADMSG, "onnx", "byte %llu, in %s: %s",
                     (unsigned long long)(at - wire->file), wire->message, what);
    bw_err_hint(wire->err, "the file is damaged or is no ONNX model");
    return rc;
}

static int read_fixed(struct bw_wire *wire, uint64_t size_bytes, uint64_t *value)
{
    if ((uint64_t)(wire->end - wire->at) < size_bytes)
        return damaged(wire, wire->at, "a fixed-size number is cut off");
    *value = 0;
    for (uint64_t i = 0; i < size_bytes; i++)
        *value |= (uint64_t)wire->at[i] << (8 * i);
    wire->at += size_bytes;
    return 0;
}

int bw_wire_next(struct bw_wire *wire, struct bw_wire_field *field)
{
    const uint8_t *start = wire->at;
    uint64_t key, length;
    if (start == wire->end)
        return 0;
    *field = (struct bw_wire_field){.offset = (uint64_t)(start - wire->file)};
    if (bw_wire_varint(&wire->at, wire->end, &key))
        return damaged(wire, start, "a field's key is cut off");
    if (key >> 3 == 0 || key >> 3 > 0x1fffffff)
        return damaged(wire, start, "field number out of range");
    field->number = (uint32_t)(key >> 3);
    field->type = (enum bw_wire_type)(key & 7);
    int rc = 0;
    switch (field->type) {
    case BW_WIRE_VARINT:
        rc = bw_wire_varint(&wire->at, wire->end, &field->value) ? damaged(wire, start, "a number is cut off")
                                                                 : 0;
        break;
    case BW_WIRE_FIXED32:
        rc = read_fixed(wire, 4, &field->value);
        break;
    case BW_WIRE_FIXED64:
        rc = read_fixed(wire, 8, &field->value);
        break;
    case BW_WIRE_BYTES:
        if (bw_wire_varint(&wire->at, wire->end, &length))
            return damaged(wire, start, "a length is cut off");
        if (length > (uint64_t)(wire->end - wire->at))
            return damaged(wire, start, "a length reaches beyond its message");
        field->bytes = (struct bw_bytes){wire->at, length};
        wire->at += length;
        break;
    default:
        return damaged(wire, start, "unknown wire type");
    }
    return rc ? rc : 1;
}

int bw_wire_expect(const struct bw_wire *wire, const struct bw_wire_field *field, enum bw_wire_type type)
{
    if (field->type == type)
        return 0;
    int rc = damaged(wire, wire->file + field->offset, "a field has the wrong wire type");
    bw_err_observed(wire->err, "field %u with wire type %d", field->number, field->type);
    return rc;
}
