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
check 1 "line 1: '0x100000000' is a number of more than 32 bits" decode "$work/wide.txt"
# One bad token is named, with its line; it turns no text into raw words.
printf '# \303\251\n0040: 0xc0001000, 7 # NOP\n\nzz\n' >"$work/token.txt"
check 1 "decode: [^ ]*/token\.txt: line 4: 'zz' is no word.*hexadecimal" decode "$work/token.txt"
printf '0xc0001000 zz' >"$work/token.txt"
check 1 "line 1: 'zz' is no word" decode "$work/token.txt"
for bad in 'c0001000:c' ':' 0x 12345678x '0040: : 1'; do
  printf '%s zz\n' "$bad" >"$work/token.txt"
  check 1 'line 1: .* is no word' decode "$work/token.txt"
done
"$bellwire" compile "$source_dir/samples/digits/digits.onnx" --arch gfx1100 --dump queues >"$work/queues.txt"
check 1 'line 2: .*is no word.*not read back' decode "$work/queues.txt"
# Nothing to decode is no success.
for nothing in '' '# a comment' '0040:'; do
  printf '%s' "$nothing" >"$work/nothing"
  check 1 'nothing holds no words' decode "$work/nothing"
done
check 1 'standard input holds no words' decode - </dev/null
# Addresses are printed as addresses, in text and in JSON.
echo c0023f00 22334450 00007f11 00801234 >"$work/ib.txt"
check 0 '' decode "$work/ib.txt"
says 'IB_BASE_LO = 0x22334450'
check 0 '' decode "$work/ib.txt" --json
says "\"IB_BASE_LO\": *$((0x22334450))"
# Packets that no builder makes.
echo c0021600 22334450 00007f11 00008045 c0071e00 0400012f 22334450 00007f11 1 0 5 0 10 >"$work/rare.txt"
check 0 '' decode "$work/rare.txt"
says 'DISPATCH_INDIRECT'
says 'ATOMIC_MEM'
says 'ADDR_LO = 0x22334450'
echo 13000009 22334450 00007f11 77 c 5f31000a 22334450 00007f11 1 0 5 0 10 11 22334480 83a07f11 22335081 05007f11 >"$work/rare.txt"
check 0 '' decode --kind sdma "$work/rare.txt"
says 'COND_EXE '
says 'BASE_VA_LO = 0x22334480'
# AQL: the golden packets, one after the other, and what is wrong with one.
sed -n 's/^[a-z0-9_]*: //p' "$source_dir/tests/golden/amd/aql.txt" >"$work/aql.txt"
check 0 '' decode --kind aql "$work/aql.txt"
for name in KERNEL_DISPATCH AGENT_DISPATCH BARRIER_AND BARRIER_OR PM4_IB BARRIER_VALUE INVALID; do
  says "  $name \(16 words\)"
done
says 'KERNEL_OBJECT_LO = 0x22334440'
check 0 '' decode --kind aql "$work/aql.txt" --json
says '"kind": *"aql"'
says "\"GRID_SIZE_X\": *640"
echo 3 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 >"$work/aql.txt"
check 1 '' decode --kind aql "$work/aql.txt"
says '! reserved bits 0x00000001 set in word 1'
check 2 "kind 'gpu' is not one of pm4, sdma, aql" decode --kind gpu "$work/aql.txt"
printf '\001\002\003' >"$work/three.bin"
check 1 'not whole 32-bit words' decode "$work/three.bin"
check 1 'ENOENT' decode "$work/none"
head -c 4096 "$bellwire" >"$work/noise"
for kind in pm4 sdma aql; do
  "$bellwire" decode --kind $kind "$work/noise" >"$work/out" 2>"$work/err"
  status=$?
  [ $status -le 1 ] || complain "decode --kind $kind of noise" "exit code 0 or 1" "$status"
done
finish
