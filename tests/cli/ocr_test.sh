#!/usr/bin/env bash
# Goal: samples/ocr meets what is not a picture, not a dictionary or not a line reader with one line and exit code 1.
# (That it reads right is tested with the real model, in tests/conformance/ocr.sh.)
set -u
. "$(dirname "$0")/lib.sh"
bellwire=$(dirname "$bellwire")/samples/ocr
[ -x "$bellwire" ] || { echo "skipped: no samples/ocr in this build"; exit 77; }
digits=$source_dir/samples/digits/digits.onnx line=$source_dir/samples/ocr/line.png
printf 'a\nb\r\nc' >"$work/keys"

check 2 '^usage: ocr' "$digits" "$work/keys"
check 2 '^usage: ocr' "$digits" "$work/keys" "$line" --frobnicate
check 1 'none\.png \(ENOENT\)' "$digits" "$work/keys" "$work/none.png"
check 1 'none: cannot be read' "$digits" "$work/none" "$line"
printf '' >"$work/no_keys"
check 1 '^ocr: .*no_keys: no characters in it' "$digits" "$work/no_keys" "$line"
check 1 'none\.onnx \(ENOENT\)' "$work/none.onnx" "$work/keys" "$line"
check 1 "shape of input 'image'" "$digits" "$work/keys" "$line"
check 1 'there are: ' "$digits" "$work/keys" "$line" --device tpu
check 1 'png: ' "$digits" "$work/keys" "$work/keys"
check 1 'ocr: model: .*rgb.onnx: the output: expected f32' "$source_dir/tests/cli/models/rgb.onnx" "$work/keys" "$line"
says 'read as 1x3x48x416'
head -c 300 "$line" >"$work/cut.png"
check 1 'png: .*cut\.png' "$digits" "$work/keys" "$work/cut.png"
mkfifo "$work/fifo"
check 1 'fifo: cannot be read' "$digits" "$work/fifo" "$line"
check 1 'a\\x1bb\.png' "$digits" "$work/keys" "$(printf 'a\033b.png')"
check 1 'a\\x1bb: cannot' "$digits" "$(printf 'a\033b')" "$line"
finish
