#!/usr/bin/env python3
"""Makes the small ONNX models of this folder's tests, committed beside it: usage: make_models.py DIRECTORY"""
import struct
import sys


def varint(value):
    out = b""
    while value > 0x7f:
        out, value = out + bytes([value & 0x7f | 0x80]), value >> 7
    return out + bytes([value])


def field(number, payload):  # onnx.proto3, field numbers from there
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def node(op, inputs, outputs, name=""):
    return field(1, b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(3, name or op.lower()) +
                 field(4, op))


def value(number, name, dims, dtype=1):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(number, field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape))))


def floats(name, dims, values):
    return field(5, b"".join(field(1, d) for d in dims) + field(2, 1) + field(8, name) + field(9, struct.pack(f"<{len(values)}f", *values)))


def model(*parts):
    return field(1, 8) + field(2, "bellwire tests") + field(7, b"".join(parts) + field(2, "test")) + field(8, field(1, "") + field(2, 13))


MODELS = {
    # y = relu(x); two free dimensions share nothing
    "relu": model(node("Relu", ["x"], ["y"]), value(11, "x", ["batch", "width"]), value(12, "y", ["batch", "width"])),
    # z = x + y; both have the free dimension "batch"
    "sum": model(node("Add", ["x", "y"], ["z"]), value(11, "x", ["batch", 4]), value(11, "y", ["batch", 4]), value(12, "z", ["batch", 4])),
    "unknown_op": model(node("Frobnicate", ["x"], ["y"], "odd"), value(11, "x", [2]), value(12, "y", [2])),
    "bad_shapes": model(node("Add", ["x", "w"], ["y"], "adder"), floats("w", [3], [1, 2, 3]), value(11, "x", [2]), value(12, "y", [2])),
    "complex": model(node("Relu", ["x"], ["y"], "r"), value(11, "x", [2], 14), value(12, "y", [2], 14)),
    "gray": model(node("Identity", ["x"], ["y"]), value(11, "x", [1, 1, "h", "w"]), value(12, "y", [1, 1, "h", "w"])),
    "rgb": model(node("Identity", ["x"], ["y"]), value(11, "x", [1, 3, "h", "w"]), value(12, "y", [1, 3, "h", "w"])),
    # one file name for both
    "same_names": model(node("Relu", ["x"], ["part/one"]), node("Neg", ["x"], ["part_one"]), value(11, "x", [4]), value(12, "part/one", [4]),
                        value(12, "part_one", [4])),
    "integers": model(node("Add", ["x", "x"], ["y"]), value(11, "x", [5], 7), value(12, "y", [5], 7)),
}

for name, data in MODELS.items():
    with open(f"{sys.argv[1]}/{name}.onnx", "wb") as file:
        file.write(data)
