#!/usr/bin/env bash
# Goal: what could not be written is an error that says why, on standard output as in files, and no file is left half written.
set -u
. "$(dirname "$0")/lib.sh"
models=$source_dir/tests/cli/models
relu="run $models/relu.onnx --device host:0 --shape x=2x3"
check 0 '' asm --arch gfx1100 "$source_dir/tests/cli/kernels.s" -o "$work/k.o"
printf '0xc0021000 1 2 3\n' >"$work/pm4.txt"

# Standard output of every subcommand: full, and closed.
unwritable() { # ARGS...
  for target in full closed; do
    checks=$((checks + 1))
    if [ $target = full ]; then
      "$bellwire" "$@" >/dev/full 2>"$work/.err"
      status=$? number=ENOSPC text='No space left on device'
    else
      "$bellwire" "$@" >&- 2>"$work/.err"
      status=$? number=EBADF text='Bad file descriptor'
    fi
    [ $status = 1 ] && grep -qxF "bellwire: file: standard output cannot be written ($number). $text" "$work/.err" ||
      complain "bellwire $* >$target" "exit code 1 and $number" "$status, $(cat "$work/.err")"
  done
}
unwritable --help
unwritable help
unwritable --version
for name in devices run compile launch bench decode asm disasm mock; do unwritable $name --help; done
unwritable devices
unwritable devices --json
# shellcheck disable=SC2086
unwritable $relu
# shellcheck disable=SC2086
unwritable $relu --json
unwritable compile "$models/relu.onnx" --arch host --shape x=2x3
unwritable compile "$models/relu.onnx" --arch host --shape x=2x3 --json
unwritable compile "$models/relu.onnx" --arch host --shape x=2x3 --dump graph,ir
unwritable launch "$work/k.o" --kernel store_item --grid 1 --block 64 --arg buf:256
unwritable launch "$work/k.o" --kernel store_item --grid 1 --block 64 --arg buf:256 --json
unwritable bench launch --nodes 5 --repeats 1
unwritable bench launch --nodes 5 --repeats 1 --json
unwritable decode "$work/pm4.txt"
unwritable mock -- devices
"$bellwire" disasm --arch gfx1100 "$work/k.o" >/dev/full 2>"$work/.err"
[ $? = 1 ] || complain "disasm >/dev/full" "exit code 1" "0"
# More than one buffer: the error of the first write is the one told.
yes 0xc0021000 1 2 3 | head -n 20000 >"$work/long.txt"
unwritable decode "$work/long.txt"

# Files.
# shellcheck disable=SC2086
check 1 '/dev/full cannot be written \(ENOSPC\)' $relu --profile /dev/full
check 1 '/dev/full cannot be written \(ENOSPC\)' asm --arch gfx1100 "$source_dir/tests/cli/kernels.s" -o /dev/full
check 1 'none/k\.o cannot be written \(ENOENT\)' asm --arch gfx1100 "$source_dir/tests/cli/kernels.s" -o "$work/none/k.o"
# shellcheck disable=SC2086
check 1 'cannot be written \(EISDIR\)' $relu --profile "$work"
# shellcheck disable=SC2086
check 1 'cannot be written \(ENOTDIR\)' $relu --output "$work/k.o"
# shellcheck disable=SC2086
check 1 'directory .* \(ENOENT\)' $relu --output "$work/none/none"
mkdir "$work/out"
ln -s /dev/full "$work/out/y.npy"
# shellcheck disable=SC2086
check 1 'out/y\.npy cannot be written \(ENOSPC\)' $relu --output "$work/out"
says '^output y f32\[2,3\]: ' # what the run gave is told, of no file
mkfifo "$work/fifo"
# shellcheck disable=SC2086
check 1 'fifo cannot be written \(ENXIO\)' $relu --profile "$work/fifo" # nobody reads it
# shellcheck disable=SC2086
check 0 '' $relu --profile >(cat >"$work/profile")
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s "$work/profile" ] || sleep 0.1; done
grep -q '"ts":[0-9.]*,' "$work/profile" || complain "$last" "a profile through the pipe" "$(cat "$work/profile")"

# A disk that fills half way (here: a limit on the size of files): the old file stays, nothing lies beside it.
mkdir "$work/small"
check 0 '' run "$models/relu.onnx" --device host:0 --shape x=2x3 --output "$work/small"
cp "$work/small/y.npy" "$work/y.npy"
(
  ulimit -f 64
  "$bellwire" run "$models/relu.onnx" --device host:0 --shape x=256x256 --output "$work/small" >"$work/.out" 2>"$work/.err"
  echo $? >"$work/.status"
)
checks=$((checks + 1))
[ "$(cat "$work/.status")" = 1 ] && grep -q 'y\.npy cannot be written (EFBIG)' "$work/.err" ||
  complain "run --output on a full disk" "exit code 1 and EFBIG" "$(cat "$work/.status"), $(cat "$work/.err")"
cmp -s "$work/y.npy" "$work/small/y.npy" && [ "$(find "$work/small" -mindepth 1 | wc -l)" = 1 ] ||
  complain "run --output on a full disk" "the old file and no other" "$(ls -la "$work/small")"

# Two outputs whose names become the same file name both stay.
check 0 '' run "$models/same_names.onnx" --device host:0 --output "$work/same"
says 'written to .*/same/part_one\.npy'
says 'written to .*/same/part_one@1\.npy'
cmp -s "$work/same/part_one.npy" "$work/same/part_one@1.npy" && complain "$last" "two different files" "the same twice"
finish
