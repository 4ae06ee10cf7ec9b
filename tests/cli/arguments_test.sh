#!/usr/bin/env bash
# Goal: kernels that a C compiler made take arguments of every kind from the command line, and one that does not fit is
# refused with the list of those that do, before anything runs.
set -u
. "$(dirname "$0")/lib.sh"
command -v clang-19 >/dev/null || { echo "skipped: no clang-19"; exit 77; }
for triple in amdgcn-amd-amdhsa amdgcn--amdhsa; do
  for suffix in o so; do # relocatable, and linked
    clang-19 -x cl -cl-std=CL2.0 -target $triple -mcpu=gfx1100 -O2 -nogpulib -Xclang -finclude-default-header \
      "$source_dir/tests/cli/arguments.cl" -o "$work/k.$suffix" $([ $suffix = o ] && echo -c) || complain "clang-19 -target $triple" "an object" "none"
    check 0 '' launch "$work/k.$suffix" --kernel saxpy --grid 2 --block 2 --arg f32:2 --arg buf:f32:1,2,3,4.5 --arg 'buf:f32[4]' --arg i32:4
    says '^arg2 f32\[4\]: 2 4 6 9$'
  done
done

run() { # STATUS PATTERN KERNEL ARGS...
  local status=$1 pattern=$2 kernel=$3
  shift 3
  check "$status" "$pattern" launch "$work/k.o" --kernel "$kernel" --grid 2 --block 4 "$@"
}
run 0 '' turn --arg 'buf:i32[8]' --arg lds:16 --arg lds:16
says '^arg0 i32\[8\]: 303 202 101 0 303 202 101 0$'
run 0 '' widths --arg 'buf:f64[5]' --arg f64:0.5 --arg i64:-3 --arg i16:-4 --arg i8:-5 --arg u8:250
says '^arg0 f64\[5\]: 0\.5 -3 -4 -5 250$'
run 0 '' widths --arg 'buf:f64[5]' --arg f64:inf --arg i64:0x7fffffffffffffff --arg i16:-0x8000 --arg i8:127 --arg bool:1
says '^arg0 f64\[5\]: inf 9\.22337203685477[0-9]*e\+18 -32768 127 1$'

# What does not fit, and what would.
list='its arguments: 0 value of 4 bytes, 1 buffer, 2 buffer, 3 value of 4 bytes'
run 1 "expected 4, observed 0.*$list" saxpy
run 1 "argument 0: expected a value of 4 bytes, observed f64:2.*$list" saxpy --arg f64:2 --arg buf:64 --arg buf:64 --arg i32:4
run 1 "argument 1: expected a buffer, observed i64:1.*$list" saxpy --arg f32:2 --arg i64:1 --arg buf:64 --arg i32:4
run 1 "argument 3: expected a value of 4 bytes, observed buf:64.*$list" saxpy --arg f32:2 --arg buf:64 --arg buf:64 --arg buf:64
run 1 'argument 1: expected a value of 16 bytes.*structures by value' structure --arg buf:64 --arg i64:1
run 1 'LDS bytes.*at most 65536.*observed 131072' turn --arg 'buf:i32[8]' --arg lds:64K --arg lds:64K
run 1 'it has: saxpy, turn, structure, widths' none
check 2 'it has: saxpy, turn, structure, widths' launch "$work/k.o" --grid 1 --block 1

# Text that is no argument.
run 0 '' widths --arg buf:f64:-nan,1,1,1,1 --arg f64:-nan --arg i64:1 --arg i16:1 --arg i8:1 --arg bool:1
says '^arg0 f64\[5\]: nan 1'
for argument in buf:f32:1,,2 buf:i8:1,200 buf:f32: buf:bool:x 'buf:f32[0]' 'buf:f32[4' 'buf:f32[4]x' 'buf:f32[-1]' \
  'buf:f32[99999999999999999999]' 'buf:f64[4611686018427387904]' buf:0 lds:0 lds:2M lds:x i32:0x100000000 u8:256 f32:1e39 f64:1e999 \
  f16: i32:1.5 i32:\ 1 half:1; do
  check 2 'launch: --arg ' launch "$work/k.o" --grid 1 --block 1 --arg "$argument"
done
check 1 'f65\[3\] \(ENOENT\).*buf:f32\[64\]' launch "$work/k.o" --grid 1 --block 1 --arg 'buf:f65[3]'

# Functions of the language's library, which nobody linked; code for other machines.
printf '__kernel void f(__global int *out) { out[get_global_id(0)] = 1; }\n' >"$work/open.cl"
clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -O2 -nogpulib -Xclang -finclude-default-header "$work/open.cl" -c -o "$work/open.o"
check 1 'undefined symbol _Z13get_global_idj.*library' launch "$work/open.o" --grid 1 --block 1 --arg buf:4
clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx1030 -O2 -nogpulib -Xclang -finclude-default-header \
  "$source_dir/tests/cli/arguments.cl" -c -o "$work/other.o"
check 1 'another architecture.*expected gfx1100' launch "$work/other.o" --kernel saxpy --grid 1 --block 1
check 1 'for an AMD GPU' launch "$work/k.o" --kernel saxpy --grid 1 --block 1 --device host:0
check 1 'another architecture.*expected gfx1100' disasm --arch gfx1100 "$work/other.o"
check 1 'e_machine.*expected 224' disasm --arch gfx1100 "$bellwire"
check 0 '' disasm --arch gfx1100 "$work/k.so"
says '^saxpy:$'
finish
