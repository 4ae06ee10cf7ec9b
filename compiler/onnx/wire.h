/* The protobuf wire format, read in place. Source: protobuf.dev/programming-guides/encoding.
 *
 * A cursor walks the fields of one message; nothing is copied or allocated. Offsets in errors count from the
 * start of the file. */
#ifndef BW_COMPILER_ONNX_WIRE_H
#define BW_COMPILER_ONNX_WIRE_H

#include <stdint.h>

#include <bellwire/err.h>

struct bw_bytes {
    const uint8_t *data;
    uint64_t size_bytes;
};

enum bw_wire_type {
    BW_WIRE_VARINT = 0,
    BW_WIRE_FIXED64 = 1,
    BW_WIRE_BYTES = 2,
    BW_WIRE_FIXED32 = 5,
};

struct bw_wire {
    const uint8_t *file; /* offset 0 */
    const uint8_t *at, *end;
    const char *message; /* what is being read, for errors */
    struct bw_err *err;
};

struct bw_wire_field {
    uint32_t number;
    enum bw_wire_type type;
    uint64_t value;        /* varint, fixed32 or fixed64 */
    struct bw_bytes bytes; /* BW_WIRE_BYTES */
    uint64_t offset;       /* of the field in the file */
};

/* 1: *field is the next field; 0: the message ends here; -EBADMSG: it is damaged (err says where). */
int bw_wire_next(struct bw_wire *wire, struct bw_wire_field *field);
/* A cursor over the message inside `bytes`. */
struct bw_wire bw_wire_inside(const struct bw_wire *wire, struct bw_bytes bytes, const char *message);
/* -EBADMSG when the field has another wire type than the schema says. */
int bw_wire_expect(const struct bw_wire *wire, const struct bw_wire_field *field, enum bw_wire_type type);
/* One varint at *at, moved on: 0 or -EBADMSG. For packed repeated fields. */
int bw_wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *value);
/* How many varints lie in the bytes; a last one that is cut off counts too. */
uint64_t bw_wire_varint_count(struct bw_bytes bytes);

#endif
