#!/usr/bin/env bash
# Goal: no byte that acts on a terminal comes out of the program, whatever names a model, a file, a device, a kernel or an
# argument has; JSON stays JSON.
set -u
. "$(dirname "$0")/lib.sh"
models=$source_dir/tests/cli/models
esc=$(printf '\033[31m')

# The last command's output and errors hold newlines, tabs and printable UTF-8 only.
harmless() {
  checks=$((checks + 1))
  if LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]' "$work/.out" "$work/.err"; then
    complain "$last" "no control characters" "$(cat -v "$work/.out" "$work/.err")"
  fi
  if ! iconv -f UTF-8 -t UTF-8 "$work/.out" "$work/.err" >/dev/null 2>&1; then
    complain "$last" "valid UTF-8" "$(cat -v "$work/.out" "$work/.err")"
  fi
}
hostile() { # STATUS PATTERN ARGS...
  check "$@"
  harmless
}
byte=$(printf '\377')

# Arguments, names of devices, variables of the environment.
hostile 2 "named '.x1b\[31mfly'" "${esc}fly"
hostile 2 'unknown option --\\x1b' run "--${esc}x"
hostile 2 'unexpected argument' devices "a${esc}b$byte"
hostile 2 '\\nbellwire: all is well' devices "$(printf 'a\nbellwire: all is well')" # one line, not two
hostile 1 '\\x1b\[31mmodel\.onnx.*ENOENT' run "$work/${esc}model.onnx"
hostile 1 '\\xff' run "$work/$byte.onnx"
"$bellwire" bench "$esc" >"$work/.out" 2>"$work/.err"
last="bellwire bench ESC"
harmless
for name in "$esc" "amd$esc" "mockkfd+amd@$esc" "mockkfd+amd@gfx1100,$esc=1" "mockkfd+amd@gfx1100*$esc" "host:$esc"; do
  BW_DEV=$name hostile 3 '.' run "$models/relu.onnx" --shape x=1x1
  "$bellwire" bench launch --devices "$name" >"$work/.out" 2>"$work/.err"
  harmless
  BW_DEV=$name "$bellwire" devices >"$work/.out" 2>"$work/.err"
  last="BW_DEV=... bellwire devices"
  harmless
  BW_DEV=$name "$bellwire" devices --json >"$work/.out" 2>"$work/.err" && is_json
  harmless
done
BW_DEV=disk:/$esc hostile 3 '\\x1b.*ENOENT' run "$models/relu.onnx" --shape x=1x1
BW_WAIT_MS=$esc hostile 2 'BW_WAIT_MS' devices
BW_MOCK_FAULTS=$esc hostile 2 '.' run "$models/relu.onnx" --shape x=1x1
hostile 2 '.' mock --fault "mec:$esc" -- devices
hostile 2 '.' mock --gpu "$esc" -- devices
hostile 127 '\\x1b' mock -- "$work/$esc"
hostile 2 'gfx\\x1b' asm --arch "gfx$esc" "$models/relu.onnx" -o "$work/none.o"
hostile 2 'gfx\\x1b' disasm --arch "gfx$esc" "$models/relu.onnx"
hostile 2 'gfx\\x1b' compile "$models/relu.onnx" --shape x=1x1 --arch "gfx$esc"
hostile 2 '\\x1b' compile "$models/relu.onnx" --arch gfx1100 --dump "$esc"
hostile 2 '\\x1b' decode --kind "$esc"
hostile 2 '\\x1b' launch x.o --grid "$esc" --block 1
hostile 2 '\\x1b' launch x.o --grid 1 --block 1 --arg "i32:$esc"
hostile 2 '\\x1b' launch x.o --grid 1 --block 1 --arg "$esc:1"
hostile 2 '\\x1b' run x.onnx --tolerance "$esc"

# Names in a model: of the input, the output, the node and a dimension.
LC_ALL=C sed 's/x/\x1b/g; s/y/\xff/g; s/width/wi\ath/g; s/relu/re\x9bu/g' "$models/relu.onnx" >"$work/hostile.onnx"
hostile 2 "'\\\\x1b' is free" run "$work/hostile.onnx" --device host:0
hostile 0 '' run "$work/hostile.onnx" --device host:0 --shape @0=2x2 --output "$work/out" --profile "$work/profile"
says 'input \\x1b f32\[2,2\]'
says 'output \\xff f32\[2,2\]'
hostile 0 '' run "$work/hostile.onnx" --device host:0 --shape @0=2x2 --output "$work/out" --json
is_json
"$json_check" <"$work/profile" || complain "--profile" "JSON" "$(cat -v "$work/profile")"
for stage in graph kernels ir asm queues; do
  hostile 0 '' compile "$work/hostile.onnx" --shape @0=2x2 --arch host --dump $stage
done
hostile 2 'its inputs are: \\x1b' run "$work/hostile.onnx" --device host:0 --input "z=$work/out/y.npy"
LC_ALL=C sed 's/Frobnicate/Frob\x1bicate/' "$models/unknown_op.onnx" >"$work/op.onnx"
hostile 1 "op.onnx: byte 22: node 'odd' .Frob\\\\x1bicate, opset 13" run "$work/op.onnx" --device host:0

# Names in machine code, and text that is none.
sed 's/store_item/store\x1b\x7f/g' "$source_dir/tests/cli/kernels.s" >"$work/names.s"
"$bellwire" asm --arch gfx1100 "$work/names.s" -o "$work/names.o" >"$work/.out" 2>"$work/.err"
last="bellwire asm of a name with ESC"
harmless
check 0 '' asm --arch gfx1100 "$source_dir/tests/cli/kernels.s" -o "$work/k.o"
LC_ALL=C sed 's/store_item/store\x1b\xff\x1bem/g' "$work/k.o" >"$work/names.o"
hostile 1 'it has: .*store\\x1b\\xff\\x1bem' launch "$work/names.o" --kernel nothing --grid 1 --block 64
hostile 0 '' launch "$work/names.o" --kernel "$(printf 'store\033\377\033em')" --grid 1 --block 64 --arg buf:256
says 'store\\x1b\\xff\\x1bem on mock'
hostile 0 '' launch "$work/names.o" --kernel "$(printf 'store\033\377\033em')" --grid 1 --block 64 --arg buf:256 --json
is_json
head -c 3000 "$bellwire" >"$work/noise.s"
"$bellwire" asm --arch gfx1100 "$work/noise.s" >"$work/.out" 2>"$work/.err"
last="bellwire asm of noise"
harmless
for size in 1 2 3; do
  head -c $size "$work/noise.s" >"$work/raw"
  "$bellwire" disasm --arch gfx1100 --raw "$work/raw" >"$work/.out" 2>"$work/.err"
  harmless
done
finish
