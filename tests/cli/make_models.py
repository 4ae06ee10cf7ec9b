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


def node(op, inputs, outputs, name="", attributes=b""):
    return field(1, b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(3, name or op.lower()) +
                 field(4, op) + attributes)


def branch(name, *parts):  # a graph as an attribute
    return field(5, field(1, name) + field(6, b"".join(parts) + field(2, name)) + field(20, 5))


def value(number, name, dims, dtype=1):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(number, field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape))))


def floats(name, dims, values):
    return field(5, b"".join(field(1, d) for d in dims) + field(2, 1) + field(8, name) + field(9, struct.pack(f"<{len(values)}f", *values)))


def longs(name, values, scalar=False):
    return field(5, (b"" if scalar else field(1, len(values))) + field(2, 7) + field(8, name) + field(9, struct.pack(f"<{len(values)}q", *values)))


def external(name, dims, location):
    entry = field(13, field(1, "location") + field(2, location))
    return field(5, b"".join(field(1, d) for d in dims) + field(2, 1) + field(8, name) + entry + field(14, 1))


def model(*parts, opset=13, ir=8):
    return field(1, ir) + field(2, "bellwire tests") + field(7, b"".join(parts) + field(2, "test")) + field(8, field(1, "") + field(2, opset))


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
    "strip": model(node("Identity", ["x"], ["y"]), value(11, "x", [1, 3, 48, "w"]), value(12, "y", [1, 3, 48, "w"])),
    # how many elements there are is known once the square was computed: two pieces
    "pieces": model(node("Mul", ["x", "x"], ["t"]), node("NonZero", ["t"], ["n"]), node("Add", ["n", "n"], ["y"]), value(11, "x", [4]),
                    value(12, "y", [1, "count"], 7)),
    # y = flag ? x + x : x
    "branch": model(node("If", ["flag"], ["y"], "choice", branch("then_branch", node("Add", ["x", "x"], ["t"]), value(12, "t", [4])) +
                         branch("else_branch", node("Identity", ["x"], ["e"]), value(12, "e", [4]))),
                    value(11, "x", [4]), value(11, "flag", [], 9), value(12, "y", [4])),
    # y = x in the shape s; of the rows of w those that i names
    "reshape": model(node("Reshape", ["x", "s"], ["y"]), value(11, "x", [6]), value(11, "s", [2], 7), value(12, "y", ["a", "b"])),
    "rows": model(node("Gather", ["w", "i"], ["y"], "g"), floats("w", [2, 2], [1, 2, 3, 4]), value(11, "i", [4], 7), value(12, "y", [4, 2])),
    # from 2^53 + 1 to 2^53 + 4, which a double does not hold
    "range": model(node("Range", ["a", "b", "c"], ["y"]), longs("a", [2**53 + 1], True), longs("b", [2**53 + 4], True), longs("c", [1], True),
                   value(12, "y", [3], 7)),
    # y = x times sums that depend on no input and are too many to be folded while importing
    "constants": model(node("ConstantOfShape", ["s"], ["c"]), node("Exp", ["c"], ["e"]), node("ReduceSum", ["e", "axes"], ["t"]),
                       node("Squeeze", ["t", "axes"], ["w"]), node("MatMul", ["x", "w"], ["y"]), longs("s", [300, 300, 3]), longs("axes", [2]),
                       value(11, "x", [2, 300]), value(12, "y", [2, 300])),
    # one file name for both
    "same_names": model(node("Relu", ["x"], ["part/one"]), node("Neg", ["x"], ["part_one"]), value(11, "x", [4]), value(12, "part/one", [4]),
                        value(12, "part_one", [4])),
    # FLOAT8E4M3FN and INT4 as they are, turned, and as numbers
    "small_types": model(floats("s", [], [0.5]), node("Identity", ["x"], ["y"]), node("Transpose", ["x"], ["t"]), node("Identity", ["i"], ["j"]),
                         node("DequantizeLinear", ["x", "s"], ["a"]), node("DequantizeLinear", ["i", "s"], ["b"]),
                         value(11, "x", [2, 3], 17), value(11, "i", [5], 22), value(12, "y", [2, 3], 17), value(12, "t", [3, 2], 17),
                         value(12, "j", [5], 22), value(12, "a", [2, 3]), value(12, "b", [5]), opset=21),
    # Not models that ONNX allows; each is refused by name.
    "opset_99": model(node("Relu", ["x"], ["y"]), value(11, "x", [2]), value(12, "y", [2]), opset=99),
    "ir_99": model(node("Relu", ["x"], ["y"]), value(11, "x", [2]), value(12, "y", [2]), ir=99),
    "two_values": model(node("Relu", ["x"], ["a"]), node("Neg", ["x"], ["a"], "second"), node("Abs", ["a"], ["y"]),
                        value(11, "x", [2]), value(12, "y", [2])),
    "cycle": model(node("Add", ["x", "b"], ["a"], "first"), node("Relu", ["a"], ["b"]), node("Abs", ["b"], ["y"]),
                   value(11, "x", [2]), value(12, "y", [2])),
    "extra_input": model(node("Relu", ["x", "x"], ["y"], "r"), value(11, "x", [2]), value(12, "y", [2])),
    "declared": model(node("Relu", ["x"], ["a"], "r"), node("Abs", ["a"], ["y"]), value(11, "x", [2]), value(13, "a", [3]),
                      value(12, "y", [2])),
    "big_kernel": model(node("Conv", ["x", "w"], ["y"], "c"), floats("w", [1, 1, 3, 3], [1] * 9), value(11, "x", [1, 1, 2, 2]),
                        value(12, "y", ["n", "m", "h", "w"])),
    "bad_index": model(node("Gather", ["x", "i"], ["y"], "g"), longs("i", [0, 5]), value(11, "x", [4]), value(12, "y", [2])),
    # y = w of a file beside it
    "outside": model(node("Identity", ["w"], ["y"]), external("w", [6], "weights.bin"), value(12, "y", [6])),
    "integers": model(node("Add", ["x", "x"], ["y"]), value(11, "x", [5], 7), value(12, "y", [5], 7)),
}

for name, data in MODELS.items():
    with open(f"{sys.argv[1]}/{name}.onnx", "wb") as file:
        file.write(data)
