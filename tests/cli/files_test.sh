#!/usr/bin/env bash
# Goal: what is named as a file may be anything: a directory, a device, a FIFO with nobody at its other end. Nothing hangs or
# fills memory; a pipe that brings what a file would is as good as one.
set -u
. "$(dirname "$0")/lib.sh"
models=$source_dir/tests/cli/models
digits=$source_dir/samples/digits/digits.onnx seven=$source_dir/samples/digits/seven.png
ulimit -Sd $((4 << 20)) 2>/dev/null # KiB of data: what is read may not grow without bound (sanitizers want more and get it)
"$bellwire" --version >/dev/null 2>&1 || ulimit -Sd unlimited
mkfifo "$work/fifo"
check 0 '' asm --arch gfx1100 "$source_dir/tests/cli/kernels.s" -o "$work/k.o"
printf '0xc0021000 1 2 3\n' >"$work/pm4.txt"
check 0 '' run "$models/relu.onnx" --device host:0 --shape x=2x3 --output "$work"

# Every place that takes a file, with what is none.
refused() { # PATTERN PATH
  local pattern=$1 path=$2
  check 1 "$pattern" run "$digits" --device host:0 --input "image=$path"
  check 1 "$pattern" compile "$digits" --arch host --input "image=$path"
  check 1 "$pattern" asm --arch gfx1100 "$path" -o "$work/none.o"
  check 1 "$pattern" disasm --arch gfx1100 "$path"
  check 1 "$pattern" decode "$path"
  check 1 "$pattern" launch "$path" --grid 1 --block 1
  check 1 "$pattern" launch "$work/k.o" --kernel store_item --grid 1 --block 64 --arg "buf:$path"
}
refused 'observed a directory \(EISDIR\)' "$work"
refused 'observed a character device \(EINVAL\)' /dev/zero
refused 'observed a character device \(EINVAL\)' /dev/null
refused '/none \(ENOENT\)\. No such file' "$work/none"
refused 'fifo: nobody writes to this pipe .*ETIMEDOUT' "$work/fifo"
check 1 'observed a directory' run "$work" --device host:0
check 1 'expected a regular file, observed a character device' run /dev/zero --device host:0
check 1 'expected a regular file, observed a pipe.*save the model' run "$work/fifo" --device host:0
check 1 'expected a regular file, observed a pipe' compile "$work/fifo" --arch host
check 1 'observed a character device' run "$models/relu.onnx" --device host:0 --shape x=2x3 --expect y=/dev/zero

# Pipes that end at a limit: nothing that comes is held without one.
check 1 'has more than 67108864 bytes \(EFBIG\)' decode <(yes 0xc0021000)
check 1 'has more than 67108864 bytes' asm --arch gfx1100 <(yes s_nop) -o "$work/none.o"
yes | check 1 'standard input has more than 67108864 bytes' decode -

# Standard output by whatever name, redirected to a file that others write, too: nothing of theirs is lost.
ln -s /dev/stdout "$work/link"
for output in "asm --arch gfx1100 $source_dir/tests/cli/kernels.s -o" "run $digits --device host:0 --profile" \
  "bench all2all -b 64 -e 64 -n 1 --devices host:0,host:1 --plot"; do
  for name in /dev/stdout /dev/fd/1 /proc/self/fd/1 /proc/thread-self/fd/1 /proc/$$/fd/1 "$work/link" "$work/shared"; do
    checks=$((checks + 1))
    last="bellwire $output $name, between others"
    # shellcheck disable=SC2086
    { echo before; "$bellwire" $output $name; echo after; } >"$work/shared" 2>"$work/.err"
    [ "$(head -c 6 "$work/shared")" = before ] && [ "$(tail -c 6 "$work/shared")" = after ] && [ "$(stat -c %s "$work/shared")" -gt 500 ] ||
      complain "$last" "what others wrote, too" "$(head -c 300 "$work/shared" | tr -d '\0') $(cat "$work/.err")"
  done
done
for name in /dev/stderr /proc/$$/fd/2 "$work/shared"; do
  checks=$((checks + 1))
  { echo before >&2; "$bellwire" bench all2all -b 64 -e 64 -n 1 --devices host:0,host:1 --plot "$name" >"$work/.out"; echo after >&2; } 2>"$work/shared"
  [ "$(head -n 1 "$work/shared")" = before ] && [ "$(tail -n 1 "$work/shared")" = after ] && grep -q '</svg>' "$work/shared" &&
    grep -q '^# rank  1' "$work/.out" || complain "bench all2all --plot $name" "a picture between others" "$(head -c 300 "$work/shared")"
done

# A trace there stands among what the command says, and both are whole.
for name in /dev/stdout /proc/$$/fd/1 "$work/link" "$work/shared"; do
  for how in "mock --trace $name -- run" "run"; do
    checks=$((checks + 1))
    # shellcheck disable=SC2086
    { echo before; BW_MOCK_TRACE=$name "$bellwire" $how "$digits" --top 1; echo after; } >"$work/shared" 2>"$work/.err"
    [ "$(head -n 1 "$work/shared")" = before ] && [ "$(tail -n 1 "$work/shared")" = after ] && grep -q '^output' "$work/shared" &&
      grep -q ' gpu0 mec queue ' "$work/shared" && [ "$(grep -c '[0-9] machine: 1 x gfx1100$' "$work/shared")" = 1 ] ||
      complain "$how, traced to $name" "the trace among the output" "$(head -c 500 "$work/shared") $(cat "$work/.err")"
  done
done
exec 5>"$work/shared"
check 2 'a file of its own' mock --trace /dev/fd/5 -- devices
exec 5>&-

# Pipes that bring what a file would.
check 0 '' run "$models/relu.onnx" --device host:0 --input "x=$work/y.npy"
expected=$(grep '^output' <<<"$out")
check 0 '' run "$models/relu.onnx" --device host:0 --input x=<(cat "$work/y.npy")
[ "$(grep '^output' <<<"$out")" = "$expected" ] || complain "$last" "$expected" "$out"
check 0 '' run "$models/relu.onnx" --device host:0 --input x=<(sleep 0.5; head -c 20 "$work/y.npy"; sleep 0.5; tail -c +21 "$work/y.npy") --expect y=<(cat "$work/y.npy")
says '1 of 1 outputs as expected'
check 0 '' run "$digits" --device host:0 --input image=<(cat "$seven") --top 1
says ' at 7$'
cat "$work/y.npy" >"$work/fifo" &
check 0 '' run "$models/relu.onnx" --device host:0 --input "x=$work/fifo"
wait
check 1 'is no .npy, .pb or .png' run "$models/relu.onnx" --device host:0 --input x=<(echo nothing)
check 1 'is no .npy, .pb or .png' run "$models/relu.onnx" --device host:0 --input x=<(:)
check 1 'npy: .*the file ends before the array' run "$models/relu.onnx" --device host:0 --input x=<(head -c 140 "$work/y.npy")
check 0 '' decode <(cat "$work/pm4.txt")
says NOP
check 0 '' decode <"$work/pm4.txt"
says NOP
check 0 '' decode - <"$work/pm4.txt"
says NOP
check 0 '' decode /dev/stdin < <(cat "$work/pm4.txt")
says NOP
check 1 'standard input \(EISDIR\)' decode <"$work"
check 0 '' asm --arch gfx1100 <(cat "$source_dir/tests/cli/kernels.s") -o "$work/piped.o"
cmp -s "$work/k.o" "$work/piped.o" || complain "$last" "the same object" "another"
check 0 '' launch <(cat "$work/k.o") --kernel store_item --grid 1 --block 64 --arg "buf:256"
check 1 '' disasm --arch gfx1100 <(cat "$work/k.o")
says '^store_item:$'
check 2 'name the output' asm --arch gfx1100 <(cat "$source_dir/tests/cli/kernels.s")
check 2 'name the output' asm --arch gfx1100 - <"$source_dir/tests/cli/kernels.s"
finish
