#!/usr/bin/env bash
# Goal: `bellwire run` runs a model on the host and on the mock, takes every kind of input file, compares, and meets bad
# input with one line.
set -u
. "$(dirname "$0")/lib.sh"
models=$source_dir/tests/cli/models
digits=$source_dir/samples/digits/digits.onnx seven=$source_dir/samples/digits/seven.png

# The same answer everywhere; files go round.
for device in host:0 mockkfd+amd@gfx1100 mockdrm+amd@gfx1100; do
  check 0 '' run "$digits" --input "@0=$seven" --top 2 --device $device --output "$work/$device" --profile "$work/profile"
  says 'output digit f32\[1,10\]'
  says '^  0\.98[0-9]* at 7$'
  [ -s "$work/profile" ] || complain "$last" "a profile" "none"
done
check 0 '' run "$digits" --input "image=$seven" --device host:0 --expect "digit=$work/mockkfd+amd@gfx1100/digit.npy"
says '1 of 1 outputs as expected'
check 0 '' run "$digits" --input "image=$seven" --device host:0 --json --expect "@0=$work/host:0/digit.npy"
says '"max_abs_diff": *0'
says '"kernels": *[1-9]'
says '"file": *null'
check 1 "output 'digit': [0-9]+ of 10 elements differ, most at \[0,[0-9]\]: expected .*, observed" \
  run "$digits" --seed 3 --device host:0 --expect "@0=$work/host:0/digit.npy"
check 2 'no such output' run "$digits" --device host:0 --expect "digits=$work/host:0/digit.npy"
check 0 '' run "$digits" --device host:0 --seed 3 --output "$work/a"
check 0 '' run "$digits" --device host:0 --seed 3 --repeat 3 --expect "@0=$work/a/digit.npy" --tolerance 0,0
says 'fastest of 3 runs'

head -c 500 "$digits" >"$work/short.onnx"
check 1 'onnx: [^ ]*/short\.onnx: byte [0-9]+, in [A-Za-z]+: ' run "$work/short.onnx" --device host:0

check 0 '' run "$models/range.onnx" --device host:0 # numbers that a double does not hold
says 'i64\[3\]'

# Shapes: free dimensions by input, by name, by the shape of a file.
check 2 "batch.*'x' is free" run "$models/relu.onnx" --device host:0
check 2 "width.*'x' is free" run "$models/relu.onnx" --device host:0 --shape batch=2
check 0 '' run "$models/relu.onnx" --device host:0 --shape batch=2 --shape width=3 --output "$work/relu"
says 'output y f32\[2,3\]'
check 0 '' run "$models/relu.onnx" --device host:0 --shape @0=0x3
says 'output y f32\[0,3\]'
check 0 '' run "$models/relu.onnx" --device host:0 --shape x=2x3 --input "x=$work/relu/y.npy" --expect "y=$work/relu/y.npy" --tolerance 0,0
check 1 "shape of input 'x'" run "$models/relu.onnx" --device host:0 --shape x=2x4 --input "x=$work/relu/y.npy"
# Elements of a few bits: made up, written as bytes, read again.
for device in host:0 mockkfd+amd@gfx1100; do
  small="run $models/small_types.onnx --device $device"
  check 0 '' $small --output "$work/small"
  says 'output t f8e4m3fn\[3,2\]'
  expects=
  for name in y t j a b; do expects="$expects --expect $name=$work/small/$name.npy"; done
  check 0 '' $small --input "x=$work/small/y.npy" --input "i=$work/small/j.npy" $expects --tolerance 0,0
  says 'output y f8e4m3fn\[2,3\]'
  says 'output j i4\[5\]'
  says '5 of 5 outputs as expected'
done
check 2 'its inputs are: x' run "$models/relu.onnx" --device host:0 --shape z=2x3
check 2 'no input has it|no such|dimension' run "$models/relu.onnx" --device host:0 --shape depth=3
check 2 'expected sizes like' run "$models/relu.onnx" --device host:0 --shape x=2x-3
check 2 'has more than' run "$models/relu.onnx" --device host:0 --shape x=1000000x1000000
check 2 'its inputs are: image' run "$digits" --device host:0 --input "x=$seven"
check 2 "'image'" run "$digits" --device host:0 --shape image=1x3x8x8
check 0 '' run "$models/relu.onnx" --device host:0 --shape x=3x4 --output "$work/four"
check 0 '' run "$models/sum.onnx" --device host:0 --input "x=$work/four/y.npy"
says 'input y f32\[3,4\]'
check 0 '' run "$models/integers.onnx" --device host:0 --json
says '"dtype": *"i64"'

# Pictures: channels, order, normalisation.
check 0 '' run "$models/gray.onnx" --device host:0 --input "x=$source_dir/samples/ocr/line-16bit.png"
says 'output y f32\[1,1,49,276\]'
check 0 '' run "$models/rgb.onnx" --device host:0 --input "x=$source_dir/samples/ocr/line-palette.png" --png-bgr --png-mean 0.5 --png-std 0.5,0.5,0.5 --output "$work/rgb"
says 'output y f32\[1,3,49,292\]'
check 1 'takes no picture' run "$models/relu.onnx" --device host:0 --input "x=$seven"
check 1 "line\.png: size for input 'image': expected 16 x 16, observed 518 x 61 .* not scaled" \
  run "$digits" --device host:0 --input "image=$source_dir/samples/ocr/line.png"
check 1 "line\.png: size for input 'x': expected any x 48, observed 518 x 61" \
  run "$models/strip.onnx" --device host:0 --input "x=$source_dir/samples/ocr/line.png"
check 3 'executes nothing' run "$digits" --device null

# Values typed by hand: in the shape that the model wants, and exactly of the type. A path stays a path.
check 0 '' run "$models/relu.onnx" --device host:0 --shape x=2x3 --input x=f32:1,-2,3.5,-4,5,-6 --expect y=f32:1,0,3.5,0,5,0 --tolerance 0,0
says '1 of 1 outputs as expected'
check 0 '' run "$models/relu.onnx" --device host:0 --shape batch=2 --input x=f32:1,-2,3,-4 # the free one is what is left
says 'input x f32\[2,2\]'
check 0 '' run "$models/integers.onnx" --device host:0 --input x=i64:1,-2,3,4,4611686018427387903 --expect y=i64:2,-4,6,8,9223372036854775806
check 1 'expected 3, observed 2' run "$models/integers.onnx" --device host:0 --input x=i64:1,1,1,1,1 --expect y=i64:2,2,2,2,3
check 1 "dtype of input 'x': expected i64, observed i32" run "$models/integers.onnx" --device host:0 --input x=i32:1,2,3,4,5
check 1 "shape of input 'x': expected \[5\], observed \[2\]" run "$models/integers.onnx" --device host:0 --input x=i64:1,2
check 1 'y.: type and shape: expected i64\[1\], observed i64\[5\]' run "$models/integers.onnx" --device host:0 --expect y=i64:1
for value in i64: i64:1,,2 i64:x i64:9223372036854775808 bool:2 bool:true u8:-1 f16:1e; do
  check 2 "is not of type ${value%%:*}" run "$models/branch.onnx" --device host:0 --input "flag=$value"
done
check 1 '1,2 \(ENOENT\).*a value is typed behind its type: --input x=i64:1,2$' run "$models/integers.onnx" --device host:0 --input x=1,2
check 1 'int64:1 \(ENOENT\).*behind its type, one of bool, .*--input x=i64:1$' run "$models/integers.onnx" --device host:0 --input x=int64:1
cp "$work/relu/y.npy" "$work/f32:1"
check 1 'ENOENT' run "$models/relu.onnx" --device host:0 --input x=nothing.npy
echo "$err" | grep -q 'typed' && complain "$last" 'no word of typed values' "$err"
(cd "$work" && "$bellwire" run "$models/relu.onnx" --device host:0 --input x=./f32:1 >"$work/.out" 2>&1) || complain 'a file named f32:1' 'read as a file' "$(cat "$work/.out")"

# Made-up values that decide are named, whether it works or not; values that are given are not.
decides='depends on the values of .flag., which were made up: --input flag=bool:VALUE gives them$'
check 0 "$decides" run "$models/branch.onnx" --device host:0 --input x=f32:1,2,3,4
check 0 "$decides" run "$models/branch.onnx" --evaluator --repeat 3 --json
check 0 '' run "$models/branch.onnx" --device host:0 --input flag=bool:1 --input x=f32:1,2,3,4 --expect y=f32:2,4,6,8
check 0 '' run "$models/branch.onnx" --device host:0 --input flag=bool:0 --input x=f32:1,2,3,4 --expect y=f32:1,2,3,4
check 0 "depends on the values of .x., which were made up" run "$models/pieces.onnx" --device host:0
check 1 'RESHAPE.*the values of .s., which decide here, were made up: --input s=i64:VALUE,\.\.\. gives them$' run "$models/reshape.onnx" --device host:0
check 0 '' run "$models/reshape.onnx" --device host:0 --input s=i64:3,-1
says 'output y f32\[3,2\]'
check 1 'index 4, .*the values of .i., which decide here, were made up' run "$models/rows.onnx" --device host:0
check 1 'index 2, which is not within -2 and 1 \(ERANGE\)$' run "$models/rows.onnx" --device host:0 --input i=i64:0,0,1,2
check 0 '' run "$models/rows.onnx" --device host:0 --input i=i64:0,0,1,-1 --expect y=f32:1,2,1,2,3,4,3,4

# ONNX's own tensor files: dims 2 and 3, float, raw data.
printf '\x08\x02\x08\x03\x10\x01\x4a\x18%b' '\0\0\x80\x3f\0\0\x80\xbf\0\0\x80\x3f\0\0\x80\xbf\0\0\x80\x3f\0\0\x80\xbf' >"$work/x.pb"
check 0 '' run "$models/relu.onnx" --device host:0 --input "x=$work/x.pb"
says 'output y f32\[2,3\]: 1 0 1 0 1 0'

# Files that are not what they should be.
mkfifo "$work/fifo.onnx"
check 1 'fifo.onnx' run "$work/fifo.onnx" --device host:0
check 1 'ENOENT' run nothing.onnx --device host:0
check 1 'ENOENT' run "$digits" --device host:0 --input "image=$work/nothing.npy"
check 1 'expected \[1,3,16,16\], observed \[1,10\]' run "$digits" --device host:0 --input "image=$work/host:0/digit.npy"
check 1 "dtype of input 'x'" run "$models/integers.onnx" --device host:0 --input "x=$work/relu/y.npy"
check 1 'is no .npy, .pb or .png' run "$digits" --device host:0 --input "image=$source_dir/CONTRIBUTING.md"
: >"$work/empty.onnx"
check 1 'onnx' run "$work/empty.onnx" --device host:0
check 1 'onnx' run "$seven" --device host:0
check 1 '.' run "$work" --device host:0
for bytes in 4 10 20 60; do
  head -c -$bytes "$work/relu/y.npy" >"$work/cut.npy"
  check 1 'npy: .*cut\.npy' run "$models/relu.onnx" --device host:0 --input "x=$work/cut.npy"
  head -c -$bytes "$seven" >"$work/cut.png"
  check 1 'png: .*cut\.png' run "$digits" --device host:0 --input "image=$work/cut.png"
done
for bytes in 1 7 30 99 300 1000 5000 20000; do
  head -c $bytes "$digits" >"$work/cut.onnx"
  check 1 'onnx' run "$work/cut.onnx" --device host:0
done

head -c 30 "$work/x.pb" >"$work/cut.pb"
check 1 "onnx: [^ ]*/cut\.pb: byte [0-9]+" run "$models/relu.onnx" --device host:0 --input "x=$work/cut.pb"

# Whatever is wrong in a model: its file is named.
for name in unknown_op bad_shapes extra_input declared big_kernel bad_index; do
  check 1 "onnx: [^ ]*/$name\.onnx: byte [0-9]+" run "$models/$name.onnx" --device host:0
  check 1 "onnx: [^ ]*/$name\.onnx: byte [0-9]+" compile "$models/$name.onnx" --arch host
done
deep=$work/$(printf '%0100d/%0100d/%0100d' 0 0 0) # of a long path the end, and the finding whole
mkdir -p "$deep"
cp "$models/bad_shapes.onnx" "$deep"
check 1 'onnx: \.\.\.0+/bad_shapes\.onnx: byte 22: .*do not broadcast: \[2\], \[3\] \(EINVAL\)$' run "$deep/bad_shapes.onnx" --device host:0

# Models that ask for what is not there.
check 1 "Frobnicate.*" run "$models/unknown_op.onnx" --device host:0
echo "$err" | grep -q 'odd' || complain "$last" "the node's name" "$err"
check 1 '(adder|Add).*do not broadcast: \[[0-9,]+\], \[[0-9,]+\]' run "$models/bad_shapes.onnx" --device host:0
check 1 "\\(Relu, opset 13\\): value 'x' \\(byte 39\\) has type COMPLEX64" run "$models/complex.onnx" --device host:0

# Models that ONNX does not allow, and what an op cannot do: refused with place, node and numbers.
check 1 "opset 99 of domain 'ai.onnx': expected 1 to [0-9]+" run "$models/opset_99.onnx" --device host:0
check 1 'IR version 99: expected 1 to [0-9]+' run "$models/ir_99.onnx" --device host:0
check 1 "byte [0-9]+: node 'second' \(Neg, opset 13\): output 'a': another value" run "$models/two_values.onnx" --device host:0
check 1 "node 'first' \(Add, opset 13\): input 'b' .* part of a cycle" run "$models/cycle.onnx" --device host:0
check 1 "node 'r' \(Relu, opset 13\): 2 inputs, but the op has 1" run "$models/extra_input.onnx" --device host:0
check 1 "value 'a' is not what the file declares: expected f32\[3\], observed f32\[2\]" run "$models/declared.onnx" --device host:0
check 1 "node 'c' \(Conv, opset 13\): a kernel of 3 does not fit into 2" run "$models/big_kernel.onnx" --device host:0
check 1 "node 'g' \(Gather, opset 13\): input 1 has the index 5" run "$models/bad_index.onnx" --device host:0
check 1 "node 'g' \(Gather" compile "$models/bad_index.onnx" --arch gfx1100

# External data: beside the model, through no link that leads out, and all of it there.
mkdir "$work/beside"
cp "$models/outside.onnx" "$work/beside"
check 1 "tensor 'w' \(FLOAT\): its external file cannot be opened" run "$work/beside/outside.onnx" --device host:0
head -c 24 /dev/zero >"$work/elsewhere.bin"
ln -s ../elsewhere.bin "$work/beside/weights.bin"
check 1 "its external file lies outside the model's directory" run "$work/beside/outside.onnx" --device host:0
rm "$work/beside/weights.bin"
mkfifo "$work/beside/weights.bin"
check 1 'its external file is no regular file' run "$work/beside/outside.onnx" --device host:0
rm "$work/beside/weights.bin"
head -c 23 /dev/zero >"$work/beside/weights.bin"
check 1 'too short: expected 24 bytes from offset 0, observed a file of 23 bytes' run "$work/beside/outside.onnx" --device host:0
cp "$work/elsewhere.bin" "$work/beside/weights.bin"
check 0 '' run "$work/beside/outside.onnx" --device host:0
says 'output y f32\[6\]: 0 0 0 0 0 0'

# What is asked for twice, or in a place that is no file.
check 2 'input image: given twice' run "$digits" --device host:0 --input "image=$seven" --input "image=$seven"
check 2 'input image: given twice' run "$digits" --device host:0 --input "image=$seven" --input "@0=$seven"
check 2 'shape x: given twice' run "$models/relu.onnx" --device host:0 --shape x=1x1 --shape x=2x2
for option in '--profile -' '--output -' '--profile=' '--output='; do
  check 2 'names no file' run "$models/relu.onnx" --device host:0 --shape x=1x1 $option
done
# The hint is what to type, for the rank that the input has.
check 2 "is free.*with --shape: bind it, or give the whole shape, as x=1x64; or give the input: --input x=FILE" run "$models/relu.onnx" --device host:0
# An answer of another shape has no difference in numbers.
check 1 'type and shape: expected' run "$models/relu.onnx" --device host:0 --shape x=1x2 --expect "y=$work/relu/y.npy"
says '^0 of 1 outputs as expected$'
check 1 'type and shape: expected' run "$models/relu.onnx" --device host:0 --shape x=1x2 --expect "y=$work/relu/y.npy" --json
says '"max_abs_diff": *null'

# Outputs that cannot be written.
check 1 'directory' run "$models/relu.onnx" --device host:0 --shape x=1x1 --output "$seven/out"
check 1 'ENOENT|ENOTDIR' run "$models/relu.onnx" --device host:0 --shape x=1x1 --profile "$work/none/p.json"

# Small memory: named, and no harm done.
for way in kfd drm; do
  check 1 'device memory available \(ENOMEM\)' run "$models/relu.onnx" --device "mock$way+amd@gfx1100,vram=16M" --shape x=4096x4096
done
finish
