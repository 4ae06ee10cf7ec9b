#!/usr/bin/env bash
# Goal (S9): ^C ends whatever runs, at once and as a shell expects it (130), and leaves nothing behind: no temporary file, no half
# of a cache entry; what comes next finds all in order.
set -u
. "$(dirname "$0")/lib.sh"
mkdir -p "$work/tmp"
export TMPDIR=$work/tmp BW_WAIT_MS=600000
digits=$source_dir/samples/digits/digits.onnx

interrupt() { # SECONDS ARGS...: a run that takes longer than that, if nobody ends it
  local after=$1 status
  shift
  checks=$((checks + 1))
  last="bellwire $* # interrupted after $after s"
  # a second signal, KILL, would show as 137
  timeout --signal=INT --preserve-status --kill-after=60 "$after" "$bellwire" "$@" >"$work/.out" 2>"$work/.err"
  status=$?
  err=$(cat "$work/.err")
  [ $status = 130 ] || complain "$last" 130 "$status, $err"
  left
}

left() { # entries of the cache are named by 32 digits
  local found
  found=$(find "$work/tmp" -mindepth 1; [ ! -e "$BW_CACHE" ] || find "$BW_CACHE" -type f | grep -vE '/[0-9a-f]{32}$')
  [ -z "$found" ] || complain "$last" 'nothing left behind' "$found"
}

check 0 '' asm --arch gfx1100 "$source_dir/tests/cli/kernels.s" -o "$work/k.o"
interrupt 1 launch "$work/k.o" --kernel endless --grid 1 --block 64 --arg buf:64
interrupt 1 launch "$work/k.o" --kernel endless --grid 100 --block 64 --arg buf:64 --json
interrupt 1 mock --gpu gfx1100*2 -- launch "$work/k.o" --kernel endless --grid 1 --block 64 --arg buf:64
interrupt 1 mock --fault mec:hang -- run "$digits"
interrupt 2 run "$digits" --repeat 1000000
interrupt 2 run "$digits" --repeat 1000000 --device host:0
interrupt 1 bench emulator
interrupt 1 bench launch --nodes 2000 --repeats 1048576
interrupt 0.2 bench compile
# While kernels are compiled and the cache is filled: whenever it comes, nothing or whole entries are left.
for tenths in 1 2 3 4 5 6; do
  BW_CACHE=$work/cold$tenths
  interrupt 0.$tenths run "$digits" --repeat 1000000
done

# While files are written, again and again until a signal falls into it: each is old or new, and nothing stands beside it.
while_writing() { # SIGNAL ARGS...: a run that writes below $work/written
  local signal=$1 pid status
  shift
  checks=$((checks + 1))
  last="bellwire $* # ended by $signal while it writes"
  "$bellwire" "$@" >"$work/.out" 2>"$work/.err" &
  pid=$!
  while kill -0 $pid 2>/dev/null && ! ls -l /proc/$pid/fd 2>/dev/null | grep -qF "$work/written"; do :; done
  kill -"$signal" $pid 2>/dev/null
  wait $pid 2>/dev/null
  status=$?
  [ $status = 0 ] || [ $status = $((128 + $(kill -l "$signal"))) ] || complain "$last" "0 or the signal" "$status, $(cat "$work/.err")"
  find "$work/written" -name '.*' -type f | grep . && complain "$last" 'nothing beside what is written' "$(ls -lA "$work/written")"
}
mkdir "$work/written"
for signal in INT TERM HUP; do
  while_writing $signal run "$source_dir/tests/cli/models/relu.onnx" --device host:0 --shape x=4096x4096 --output "$work/written"
done
while_writing INT run "$digits" --device host:0 --profile "$work/written/profile"
while_writing TERM asm --arch gfx1100 "$source_dir/tests/cli/kernels.s" -o "$work/written/k.o"
while_writing HUP bench all2all -b 1K -e 1K -n 1 --plot "$work/written/plot.svg"

check 0 '' run "$digits" --top 1
check 0 '' launch "$work/k.o" --kernel store_item --grid 1 --block 64 --arg buf:256
finish
