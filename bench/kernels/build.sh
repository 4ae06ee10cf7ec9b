#!/usr/bin/env bash
# usage: bench/kernels/build.sh   Rebuilds the .inc files beside it (needs LLVM 19); they are committed, so that nothing else does.
set -eu
cd "$(dirname "$0")"
words() { # OBJECT INC: the object as 32-bit words, zero padded
  od -An -v -t x4 -w32 "$1" | sed -E 's/ +([0-9a-f]{8})/0x\1,/g' >"$2"
}
object=$(mktemp)
trap 'rm -f "$object"' EXIT
clang-19 -target x86_64-linux-gnu -std=c17 -O2 -fPIC -fno-ident -fno-asynchronous-unwind-tables -I../.. -I../../include -x c -c tiny_x86_64.kernel -o "$object"
llvm-strip-19 --strip-unneeded --keep-section=.bellwire.kernels --keep-symbol=tiny "$object"
words "$object" tiny_x86_64.inc
llvm-mc-19 -triple amdgcn-amd-amdhsa -mcpu=gfx1100 -filetype=obj tiny_gfx1100.s -o "$object"
words "$object" tiny_gfx1100.inc
clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -O3 -ffp-contract=off emulator.cl -o "$object"
llvm-strip-19 --strip-debug -R .note -R .comment "$object"
words "$object" emulator_gfx1100.inc
clang-19 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -x assembler valu_loop_gfx1100.s -o "$object"
words "$object" valu_loop_gfx1100.inc
