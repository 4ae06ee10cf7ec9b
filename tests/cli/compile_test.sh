#!/usr/bin/env bash
# Goal: `bellwire compile` shows every stage of a model for GPUs that are not there, and for the host.
set -u
. "$(dirname "$0")/lib.sh"
digits=$source_dir/samples/digits/digits.onnx

check 0 '' compile "$digits" --arch gfx1100
says '^[1-9][0-9]* kernels, [1-9][0-9]* launches, for gfx1100'
check 0 '' compile "$digits" --arch host --json
says '"launches": *[1-9]'
check 0 '' compile "$digits" --arch gfx1200
check 0 '' compile "$digits" --arch gfx1100 --dump graph
says 'output 0: %'
check 0 '' compile "$digits" --arch gfx1100 --dump kernels,ir
says 'launch 0: kernel 0'
check 0 '' compile "$digits" --arch gfx1100 --dump asm
says 'amdgcn-amd-amdhsa--gfx1100'
for arch in gfx90a gfx942 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201; do # no device, no mock: from the table alone
  BW_DEV=none BW_MOCK_FAULTS=doorbell:drop check 0 '' compile "$digits" --arch $arch --dump queues
  says "amd@$arch, compute queue 0: "
  says 'DISPATCH_DIRECT'
  says 'COPY_LINEAR'
  grep -qE '!|reserved|unknown' <<<"$out" && complain "$last" 'no packet with a problem' "$(grep -E '!|reserved|unknown' <<<"$out")"
  first=$out
  check 0 '' compile "$digits" --arch $arch --dump queues
  [ "$out" = "$first" ] || complain "$last" 'the same words again' 'others'
done
check 0 '' compile "$digits" --arch host --dump queues
says 'KERNEL .* groups'
check 2 "architecture 'gfx1'.*known: .*gfx1100" compile "$digits" --arch gfx1
check 2 "is free" compile "$source_dir/tests/cli/models/relu.onnx" --arch gfx1100
check 0 '' compile "$source_dir/tests/cli/models/relu.onnx" --arch gfx1100 --shape x=2x3
check 1 'ENOENT' compile none.onnx --arch gfx1100
check 1 'Frobnicate' compile "$source_dir/tests/cli/models/unknown_op.onnx" --arch gfx1100

# What compile counts is what a run launches; what depends on constants only is apart.
cp "$source_dir/tests/cli/models/constants.onnx" "$work/m.onnx"
for model in "$digits" "$work/m.onnx"; do
  check 0 '' compile "$model" --arch host
  shown=$(sed -nE 's/^[0-9]+ kernels, ([0-9]+) launches( and [0-9]+ once)?, for host$/\1/p' <<<"$out") table=$(awk 'NR > 1 && NF == 6 { launches += $2 } END { print launches + 0 }' <<<"$out")
  check 0 '' compile "$model" --arch host --json
  is_json
  says "^.\"launches\": *$shown,"
  check 0 '' run "$model" --device host:0
  checks=$((checks + 1))
  [ -n "$shown" ] && [ "$shown" = "$table" ] && [ "$shown" = "$(sed -nE 's/^([0-9]+) kernels, .*/\1/p' <<<"$out")" ] || complain "$last" "$shown kernels, as compile says" "$out"
done
check 0 '' compile "$work/m.onnx" --arch host
says '^2 kernels, 1 launches and 1 once, for host$'

# What a model becomes may depend on values: those that were made up are named, those that a run computes refused.
models=$source_dir/tests/cli/models
for dump in '' '--dump graph' '--json'; do
  check 0 'depends on the values of .flag., which were made up: --input flag=bool:VALUE gives them$' compile "$models/branch.onnx" --arch gfx1100 $dump
done
check 0 '' compile "$models/branch.onnx" --arch gfx1100 --input flag=bool:1
says '^1 kernels, 1 launches, for gfx1100$'
check 0 '' compile "$models/branch.onnx" --arch gfx1100 --input flag=bool:0
says '^0 kernels, 0 launches, for gfx1100: nothing is left to compute$'
check 1 'RESHAPE.*the values of .s., which decide here, were made up' compile "$models/reshape.onnx" --arch host
check 0 '' compile "$models/reshape.onnx" --arch host --input s=i64:2,3 --dump graph
check 1 "node 'nonzero' .*only a run can give.* in pieces" compile "$models/pieces.onnx" --arch host
check 2 "'x' is not of type bool" compile "$models/branch.onnx" --arch host --input flag=bool:x
finish
