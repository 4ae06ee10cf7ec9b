#!/usr/bin/env python3
"""Prints compiler/onnx/schema_table.c: what ONNX's own Changelog.md says of the ops that compiler/onnx/ops_*.c has.
usage: onnx-schemas.py CHANGELOG.md SOURCE_DIR > compiler/onnx/schema_table.c     (Changelog.md: docs/ of the onnx repository)"""
import glob
import re
import sys

# One letter for each element type, as in compiler/onnx/dtypes.c; '#' stands for whatever is no tensor.
LETTERS = {
    "bool": "b", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "L", "int8": "c", "int16": "h", "int32": "i", "int64": "l",
    "float16": "e", "bfloat16": "E", "float": "f", "double": "d", "string": "s", "complex64": "z", "complex128": "Z",
    "float8e4m3fn": "m", "float8e4m3fnuz": "M", "float8e5m2": "n", "float8e5m2fnuz": "N", "float4e2m1": "o", "float8e8m0": "x",
    "uint4": "J", "int4": "j", "uint2": "K", "int2": "k",
}
ATTRIBUTES = {
    "int": "i", "float": "f", "string": "s", "tensor": "t", "graph": "g", "list of ints": "I", "list of floats": "F",
    "list of strings": "S", "sparse_tensor": "p", "type_proto": "y",
}


def type_letters(text):
    letters = ""
    for kind in re.findall(r"[a-z]+\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", text):
        tensor = re.fullmatch(r"tensor\((\w+)\)", kind)
        letters += LETTERS.get(tensor.group(1), "") if tensor else "#"
    return "".join(sorted(set(letters)))


def section(body, title):
    match = re.search(r"^#### " + title + r"(?: \(([0-9&#;]+) - ([0-9&#;]+)\))?\n(.*?)(?=^#### |\Z)", body, re.M | re.S)
    return (match.group(1), match.group(3)) if match else (None, "")


def parameters(body, title):
    """The formal parameters as text, and how many must be there."""
    least, text = section(body, title)
    formal = []
    for traits, kind in re.findall(r"^<dt><tt>.*?</tt>(?: \(([^)]*)\))? : (.*?)</dt>$", text, re.M):
        mark = "?" if "optional" in traits else "~" if "heterogeneous" in traits else "*" if "variadic" in traits else ""
        formal.append(("=" + type_letters(kind) if "(" in kind else kind) + mark)
    return " ".join(formal), int(least) if least else len(formal)


def row(name, version, body, deprecated):
    if deprecated:
        return f'    {{"{name}", {version}, 0, 0, NULL, NULL, NULL, NULL}},'
    inputs, least_inputs = parameters(body, "Inputs")
    outputs, least_outputs = parameters(body, "Outputs")
    attributes = [
        attribute + ":" + ATTRIBUTES[kind.strip()] + ("!" if "required" in traits else "")
        for attribute, kind, traits in re.findall(r"^<dt><tt>(.*?)</tt> : ([a-z_ ]+)(.*?)</dt>$", section(body, "Attributes")[1], re.M)
    ]
    types = [f"{variable}={type_letters(kinds)}" for variable, kinds in
             re.findall(r"^<dt><tt>(.*?)</tt> : (.*?)</dt>$", section(body, "Type Constraints")[1], re.M)]
    text = [f'"{part}"' for part in (inputs, outputs, " ".join(attributes), " ".join(types))]
    return f'    {{"{name}", {version}, {least_inputs}, {least_outputs}, {", ".join(text)}}},'


def main():
    supported, newest = set(), 0
    for path in glob.glob(sys.argv[2] + "/compiler/onnx/ops_*.c"):
        with open(path, encoding="utf-8") as file:
            supported |= set(re.findall(r'^    \{"(\w+)", \d+, (?:\.function = )?[a-z]', file.read(), re.M))
    with open(sys.argv[1], encoding="utf-8") as file:
        parts = re.split(r"^### <a name=\"(?:[\w.]+\.)?(\w+)-(\d+)\"></a>\*\*([\w.]+)-\d+\*\*(.*)$", file.read(), flags=re.M)
    rows = []
    for name, version, full, mark, body in zip(*[iter(parts[1:])] * 5):
        if name in supported and full in (name, "ai.onnx.preview.training." + name):
            rows.append((name, int(version), row(name, int(version), body, "deprecated" in mark)))
    print("/* What ONNX says of the ops that compiler/onnx has: made by scripts/onnx-schemas.py from docs/Changelog.md of the ONNX project\n"
          " * (Apache-2.0). The form of a row is in schema.h. */")
    print('#include "compiler/onnx/schema.h"\n\n#include "base/bits.h"\n\n/* clang-format off */')
    print("static const struct bw_onnx_schema rows[] = {")
    print("\n".join(text for _, _, text in sorted(rows)))
    print("};\n/* clang-format on */\n")
    print("const struct bw_onnx_schemas bw_onnx_schema_table = {rows, BW_COUNT_OF(rows)};")


main()
