#!/usr/bin/env bash
# Goal: every subcommand's --json is one JSON document with the keys that the man page lists, also when there is nothing to
# say, when values are not finite, when something is wrong, and in a locale with decimal commas.
set -u
. "$(dirname "$0")/lib.sh"
models=$source_dir/tests/cli/models
digits=$source_dir/samples/digits/digits.onnx

has() { # KEY...: of the contract
  local key
  for key in "$@"; do says "\"$key\":"; done
}

check 0 '' devices --json
document devices
has name driver iface arch vram_bytes mock usable why
check 0 '' run "$models/relu.onnx" --device host:0 --shape @0=2x3 --json
out=$(sed 's/"[xy]":/ /' <<<"$out") # names of this model, not keys
document run
has model device outputs dtype shape file max_abs_diff max_rel_diff kernels seconds load compile link run
says '"max_abs_diff": *null'
check 0 '' run "$models/relu.onnx" --device host:0 --shape @0=0x3 --top 3 --json
is_json
says '"top": *\[\]'
# Not finite: JSON has no word for it.
printf '\x08\x02\x08\x03\x10\x01\x4a\x18%b' '\0\0\xc0\x7f\0\0\x80\x7f\0\0\x80\x3f\0\0\x80\xbf\0\0\xc0\x7f\0\0\x80\x3f' >"$work/nan.pb"
check 0 '' run "$models/relu.onnx" --device host:0 --input "x=$work/nan.pb" --top 6 --json
is_json
check 0 '' run "$models/relu.onnx" --device host:0 --input "x=$work/nan.pb" --output "$work/nan"
check 1 'differ' run "$models/relu.onnx" --device host:0 --shape x=2x3 --expect "y=$work/nan/y.npy" --json
is_json
check 0 '' compile "$digits" --arch gfx1100 --json
document compile
check 0 '' compile "$digits" --arch gfx1100 --dump graph,kernels,ir,asm,queues --json
out=$(sed 's/^  *"\(graph\|kernels\|ir\|asm\|queues\)": *"/ "/' <<<"$out") # stages
document compile
check 0 '' asm --arch gfx1100 "$source_dir/tests/cli/kernels.s" -o "$work/k.o" --json
document asm
check 1 '' disasm --arch gfx1100 "$work/k.o" --json
document disasm
says '"text": *null'
check 0 '' launch "$work/k.o" --kernel store_item --grid 1 --block 64 --arg buf:256 --json
out=$(sed 's/"arg0":/ /' <<<"$out")
document launch
printf '0xc0021000 1 2 3 0xc0017600 0x20c 1 0xc0ff1000 1\n' >"$work/pm4.txt"
check 1 '' decode "$work/pm4.txt" --json
out=$(sed 's/"[A-Z_0-9]*":/ /' <<<"$out") # names of fields
document decode
says '"problem": *"cut off'
says '"registers"'
: >"$work/empty"
check 1 'empty holds no words' decode "$work/empty" --json
check 1 'empty holds no words' decode --kind sdma "$work/empty" --json
check 1 'empty holds no instructions' disasm --arch gfx1100 "$work/empty" --json
check 0 '' bench launch --nodes 5 --repeats 1 --json
document bench
has device nodes host_ns_per_node done_ns_per_node syscalls_per_replay allocations_per_replay dwords_per_node waits_per_node cache_ops_per_node doorbells_per_replay
check 0 '' bench copy -b 4K -e 4K --repeats 1 --json
document bench
has from to size_bytes gb_per_s memcpy_gb_per_s
check 0 '' bench all2all -b 4K -e 8K -f 2 -n 2 --json
document bench
check 0 '' bench all2all --devices 'mockkfd+amd@gfx1100*2,cu=2,vram=64M' -b 4K -e 8K -f 2 -n 2 --json
document bench
has model file bound_gb_per_s achieved_gb_per_s links from to busy engines gpu engine
has devices results size_bytes count type redop root out_of_place in_place seconds algbw_gb_per_s busbw_gb_per_s wrong matrix_gb_per_s memcpy_gb_per_s moved_gb_per_s
check 0 '' bench allreduce -b 4K -e 4K -n 1 -o max --json
document bench
has devices results size_bytes count type redop root out_of_place in_place matrix_gb_per_s memcpy_gb_per_s model
says '"redop": *"max"'
check 0 '' bench schedule --nodes 100 --repeats 1 --json
document bench
has shape devices calls schedule_seconds link_seconds add_ns_per_call schedule_ns_per_call link_ns_per_call growth
check 0 '' bench gemm -b 32 -e 32 --repeats 1 --json
document bench
has device dtype m n k gflops
check 0 '' mock -- devices --json
document devices
# What fails prints no document, or a whole one.
for arguments in "run none.onnx" "run $models/unknown_op.onnx" "launch none.o --grid 1 --block 1" "bench copy --devices tpu" \
  "compile none.onnx --arch host" "disasm --arch gfx1100 none" "decode none"; do
  # shellcheck disable=SC2086
  "$bellwire" $arguments --json >"$work/.out" 2>"$work/.err"
  checks=$((checks + 1))
  [ ! -s "$work/.out" ] && [ "$(grep -c '' "$work/.err")" = 1 ] || complain "bellwire $arguments --json" "one line of error, nothing else" "$(cat "$work/.out" "$work/.err")"
done

# A locale with decimal commas changes neither what is read nor what is written.
plain_run() {
  check 0 '' run "$digits" --device host:0 --png-mean 0.5 --input "image=$source_dir/samples/digits/seven.png" --top 2 --tolerance 0.5,0.5 "$@"
}
if localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" 2>/dev/null; then
  plain_run
  plain_run # now with the cache
  expected=$(grep -v seconds <<<"$out")
  printf '#!/bin/sh\nLOCPATH=%s LC_ALL=de_DE.UTF-8 exec %s "$@"\n' "$work" "$bellwire" >"$work/german"
  chmod +x "$work/german"
  bellwire=$work/german
  plain_run
  checks=$((checks + 1))
  [ "$(grep -v seconds <<<"$out")" = "$expected" ] || complain "$last in de_DE" "$expected" "$out"
  plain_run --json
  is_json
  check 0 '' launch "$work/k.o" --kernel store_item --grid 1 --block 64 --arg buf:256 --json
  is_json
else
  echo "de_DE cannot be made here: its checks are skipped"
fi
finish
