#!/usr/bin/env bash
# usage: tests/unit/hcq/kernels_gfx1100.sh   Rebuilds kernels_gfx1100.inc, which is committed, so that the tests need no compiler for the GPU.
set -eu
cd "$(dirname "$0")"
object=$(mktemp)
trap 'rm -f "$object"' EXIT
clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -mcode-object-version=5 -O2 -nogpulib -fno-ident -c kernels_gfx1100.cl -o "$object"
od -An -v -t x4 -w32 "$object" | sed -E 's/ +([0-9a-f]{8})/0x\1,/g' >kernels_gfx1100.inc
