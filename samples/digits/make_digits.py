#!/usr/bin/env python3
"""Makes digits.onnx and seven.png: the repository's own small model, for machines where no other can be had.

A fixed random 3x3 convolution with 8 channels, ReLU, 2x2 max pooling, then a softmax layer trained here on digits that are drawn
from a 5x7 bitmap font at random places, sizes and grey levels. Needs nothing but Python; takes about half a minute; the
same seed gives the same bytes.   usage: make_digits.py DIRECTORY
"""
import math
import random
import struct
import sys
import zlib

SIDE, CHANNELS, CLASSES = 16, 8, 10
FONT = ["01110 10001 10011 10101 11001 10001 01110", "00100 01100 00100 00100 00100 00100 01110",
        "01110 10001 00001 00010 00100 01000 11111", "11111 00010 00100 00010 00001 10001 01110",
        "00010 00110 01010 10010 11111 00010 00010", "11111 10000 11110 00001 00001 10001 01110",
        "00110 01000 10000 11110 10001 10001 01110", "11111 00001 00010 00100 01000 01000 01000",
        "01110 10001 10001 01110 10001 10001 01110", "01110 10001 10001 01111 00001 00010 01100"]


def draw(rng, digit, noise=True):
    """A 16x16 picture, 0 to 1, dark digit on a light ground."""
    rows = FONT[digit].split()
    scale_y, scale_x = (2, 2) if not noise else (rng.choice((1.7, 2.0)), rng.choice((1.6, 2.0, 2.4)))
    top, left = ((1, 3) if not noise else (rng.uniform(0, SIDE - 7 * scale_y), rng.uniform(0, SIDE - 5 * scale_x)))
    ground, ink = (1.0, 0.0) if not noise else (rng.uniform(0.75, 1.0), rng.uniform(0.0, 0.3))
    picture = []
    for y in range(SIDE):
        for x in range(SIDE):
            fy, fx = (y - top) / scale_y, (x - left) / scale_x
            lit = 0 <= fy < 7 and 0 <= fx < 5 and rows[int(fy)][int(fx)] == "1"
            value = (ink if lit else ground) + (rng.gauss(0, 0.03) if noise else 0)
            picture.append(min(1.0, max(0.0, value)))
    return picture


def features(picture, weights, biases):
    """Convolution (padding 1), ReLU, 2x2 max pooling: CHANNELS x 8 x 8 values."""
    padded = [[0.0] * (SIDE + 2) for _ in range(SIDE + 2)]
    for y in range(SIDE):
        padded[y + 1][1:SIDE + 1] = picture[y * SIDE:(y + 1) * SIDE]
    out = []
    for channel in range(CHANNELS):
        w = weights[channel]
        plane = [[max(0.0, biases[channel] + sum(w[k] * padded[y + k // 3][x + k % 3] for k in range(9)))
                  for x in range(SIDE)] for y in range(SIDE)]
        out += [max(plane[2 * y][2 * x], plane[2 * y][2 * x + 1], plane[2 * y + 1][2 * x], plane[2 * y + 1][2 * x + 1])
                for y in range(SIDE // 2) for x in range(SIDE // 2)]
    return out


def train(rng, weights, biases, samples=3000, epochs=12):
    data = [(features(draw(rng, i % CLASSES), weights, biases), i % CLASSES) for i in range(samples)]
    size = len(data[0][0])
    matrix, offset = [[0.0] * size for _ in range(CLASSES)], [0.0] * CLASSES
    for epoch in range(epochs):
        rng.shuffle(data)
        rate = 0.02 / (1 + epoch)
        for values, label in data:
            scores = [offset[c] + sum(map(float.__mul__, matrix[c], values)) for c in range(CLASSES)]
            top = max(scores)
            powers = [math.exp(s - top) for s in scores]
            total = sum(powers)
            for c in range(CLASSES):
                step = rate * (powers[c] / total - (c == label))
                if abs(step) > 1e-4:
                    offset[c] -= step
                    matrix[c] = [w - step * v for w, v in zip(matrix[c], values)]
    return matrix, offset


# --- protobuf, as much as ONNX needs (onnx.proto3, field numbers from there) ---
def varint(value):
    out = b""
    while value > 0x7f:
        out, value = out + bytes([value & 0x7f | 0x80]), value >> 7
    return out + bytes([value])


def field(number, payload):
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def tensor(name, dims, values):
    return b"".join(field(1, d) for d in dims) + field(2, 1) + field(8, name) + field(9, struct.pack(f"<{len(values)}f", *values))


def int_tensor(name, values):
    return field(1, len(values)) + field(2, 7) + field(8, name) + field(9, struct.pack(f"<{len(values)}q", *values))


def attribute(name, value):
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)


def node(op, inputs, outputs, **attributes):
    return (b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(3, op.lower()) + field(4, op) +
            b"".join(field(5, attribute(k, v)) for k, v in attributes.items()))


def value_info(name, dims):
    shape = b"".join(field(1, field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def model(weights, biases, matrix, offset):
    size = CHANNELS * (SIDE // 2) ** 2
    grey = [w / 3 for channel in weights for _ in range(3) for w in channel]
    graph = b"".join(field(1, n) for n in (
        node("Conv", ["image", "conv.weight", "conv.bias"], ["a"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        node("Relu", ["a"], ["b"]),
        node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Reshape", ["c", "flat"], ["d"]),
        node("Gemm", ["d", "dense.weight", "dense.bias"], ["e"], transB=1),
        node("Softmax", ["e"], ["digit"], axis=1)))
    graph += field(2, "digits")
    graph += b"".join(field(5, t) for t in (
        tensor("conv.weight", [CHANNELS, 3, 3, 3], grey), tensor("conv.bias", [CHANNELS], biases),
        tensor("dense.weight", [CLASSES, size], [w for row in matrix for w in row]), tensor("dense.bias", [CLASSES], offset),
        int_tensor("flat", [1, size])))
    graph += field(11, value_info("image", [1, 3, SIDE, SIDE])) + field(12, value_info("digit", [1, CLASSES]))
    return field(1, 8) + field(2, "bellwire") + field(7, graph) + field(8, field(1, "") + field(2, 13))


def png(picture):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(round(255 * v) for v in picture[y * SIDE:(y + 1) * SIDE]) for y in range(SIDE))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def main(directory):
    rng = random.Random(2026)
    weights = [[rng.gauss(0, 0.5) for _ in range(9)] for _ in range(CHANNELS)]
    biases = [rng.gauss(0, 0.2) for _ in range(CHANNELS)]
    matrix, offset = train(rng, weights, biases)
    tests = [(features(draw(rng, i % CLASSES), weights, biases), i % CLASSES) for i in range(500)]
    right = 0
    for values, label in tests:
        scores = [offset[c] + sum(map(float.__mul__, matrix[c], values)) for c in range(CLASSES)]
        right += scores.index(max(scores)) == label
    print(f"{right / len(tests):.1%} of 500 unseen digits are read right")
    with open(f"{directory}/digits.onnx", "wb") as file:
        file.write(model(weights, biases, matrix, offset))
    with open(f"{directory}/seven.png", "wb") as file:
        file.write(png(draw(rng, 7, noise=False)))


main(sys.argv[1] if len(sys.argv) > 1 else ".")
