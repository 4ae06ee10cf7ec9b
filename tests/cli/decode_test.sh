#!/usr/bin/env bash
# Goal: rings and command buffers are printed by packet and field, from text or binary, and what is wrong is marked.
set -u
. "$(dirname "$0")/lib.sh"

printf '0xc0021000 1 2 3\n' >"$work/pm4.txt" # NOP of four words
check 0 '' decode "$work/pm4.txt"
says 'NOP'
printf '\000\020\002\300\001\000\000\000\002\000\000\000\003\000\000\000' >"$work/pm4.bin"
check 0 '' decode --kind pm4 "$work/pm4.bin"
says 'NOP'
printf '0xc0ff1000 1\n' >"$work/cut.txt" # says 257 words
check 1 '' decode "$work/cut.txt"
printf '0xc000ff00 1\n' >"$work/unknown.txt"
check 1 '' decode "$work/unknown.txt"
printf '0\n' >"$work/sdma.txt" # NOP
check 0 '' decode --kind sdma "$work/sdma.txt"
says 'NOP'
printf '0x100000000\n' >"$work/wide.txt"
check 1 'more than 32 bits' decode "$work/wide.txt"
printf '\001\002\003' >"$work/three.bin"
check 1 'not whole 32-bit words' decode "$work/three.bin"
check 1 'ENOENT' decode "$work/none"
head -c 4096 "$bellwire" >"$work/noise"
for kind in pm4 sdma; do
  "$bellwire" decode --kind $kind "$work/noise" >"$work/out" 2>"$work/err"
  status=$?
  [ $status -le 1 ] || complain "decode --kind $kind of noise" "exit code 0 or 1" "$status"
done
finish
