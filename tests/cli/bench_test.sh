#!/usr/bin/env bash
# Goal: each bench runs, prints a table for people and the documented keys as JSON.
set -u
. "$(dirname "$0")/lib.sh"
unset BW_DEV # each bench has a default of its own

check 0 '' bench launch --nodes 20 --repeats 5
says '^null '
check 0 '' bench launch --nodes 20 --repeats 5 --json --devices null,mockkfd+amd@gfx1100
says '"host_ns_per_node": *[0-9]'
says '"device": *"mockkfd\+amd:0@gfx1100"'
# A queue with a doorbell asks the kernel for nothing; one that the kernel feeds asks once.
check 0 '' bench launch --nodes 20 --repeats 50 --devices mockkfd+amd@gfx1100,mockdrm+amd@gfx1100
says '^mockkfd.* 0\.00 +0\.00 +[0-9.]+ +0\.00 +1\.[0-9]+ +1$'
says '^mockdrm.* 1\.00 +0\.00 +[0-9.]+ +0\.00 +1\.[0-9]+ +1$'
check 0 '' bench copy -b 4K -e 64K -f 16 --json
says '"gb_per_s": *[0-9]'
says '"memcpy_gb_per_s": *[0-9]'
check 0 '' bench disk -b 100000 -e 5M -f 50 --repeats 1 --devices host:0,mockkfd+amd@gfx1100,cu=2
says '^# read by (io_uring|threads)'
says '^mockkfd\+amd:0@gfx1100\S* +5000000 '
check 0 '' bench disk -b 64K -e 64K --repeats 1 --json
document bench
for key in file_gb_per_s copy_gb_per_s both_gb_per_s share_of_slower direct_share; do says "\"$key\": *[0-9]"; done
says '"ring": *"(io_uring|threads)'
for bytes in 18446744073709551615 9223372036854775807 1152921504606846976; do # never a full disk
  check 1 'a file of [0-9]+ bytes in .TMPDIR \((EFBIG|ENOSPC|EINVAL)\)' bench disk -e "$bytes"
done
TMPDIR=/none check 1 '/none/bellwire-disk-.*ENOENT' bench disk
check 3 'unknown driver' bench launch --devices tpu
check 3 'there are: .*host:0, null, mockkfd' bench launch --devices nope # one list, of what there is
check 0 '' bench compile --json
document bench
for net in mlp resnet_block resnet18; do says "\"case\": *\"$net\""; done
says '"cold_seconds": *[0-9]'
says '"again_seconds": *[0-9]'
check 0 '' bench emulator --json
document bench
for kernel in valu_loop matmul_f32 wave_start elementwise softmax scan radix_sort sha256 conv3x3 gemm_lds attention; do
  says "\"case\": *\"$kernel\""
  grep -qE "\b$kernel\b" "$source_dir/docs/man/bellwire-bench.1" || complain 'bellwire-bench(1)' "the case $kernel" 'nothing of it'
done
says '"nanoseconds": *[0-9]'
says '"geomean_wave_instructions_per_second": *[0-9]'
check 0 '' bench schedule --nodes 1000 --repeats 1
says '^chain +4 +10 +[0-9.]+ +[0-9.]+ +[0-9.]+ +-$'
says '^all-to-all +4 +1000 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$'
check 0 '' bench schedule --nodes 500 --repeats 1 --devices null,host:0
says '^random +2 +500 '
check 0 '' bench schedule --nodes 20000 --json # ten times the calls, and a call costs about the same: 10 would be quadratic
is_json
says '"growth": *null'
for key in schedule_seconds link_seconds; do says "\"$key\": *[0-9.e-]+,"; done
# Both ways to say it are one figure: seconds of the graph, nanoseconds of a call.
for pair in schedule link; do
  checks=$((checks + 1))
  paste <(grep -oP '"calls": *\K[0-9]+' <<<"$out") <(grep -oP "\"${pair}_seconds\": *\K[0-9.e-]+" <<<"$out") <(grep -oP "\"${pair}_ns_per_call\": *\K[0-9.e-]+" <<<"$out") |
    awk '{ rows++; off = $2 * 1e9 / $1 - $3; if (off * off > 1e-6 * $3 * $3) wrong = 1 } END { exit wrong || !rows }' ||
    complain "$last" "${pair}_seconds of so many calls of ${pair}_ns_per_call" "$out"
done
for growth in $(grep -oE '"growth": *[0-9.]+' <<<"$out" | grep -oE '[0-9.]+$'); do
  checks=$((checks + 1))
  [ "${growth%.*}" -lt 6 ] || complain "$last" 'growth below 6' "$growth"
done
# Each shape that is measured is explained.
for shape in $("$bellwire" bench schedule --nodes 2 --repeats 1 | awk 'NR > 1 { print $1 }'); do
  checks=$((checks + 1))
  sed 's/\\-/-/g' "$source_dir/docs/man/bellwire-bench.1" | grep -q " $shape (" || complain 'bellwire-bench(1)' "the shape $shape" 'nothing of it'
done
check 2 '--nodes 1: at least 2' bench schedule --nodes 1
[ -z "$out" ] || complain "$last" 'no table' "$out"
check 0 '' bench schedule --nodes 2 --repeats 1
check 2 "no bench named 'nothing'; there are: launch, copy, " bench nothing
check 2 'a name is needed; there are: launch, copy, ' bench
check 0 '' bench copy -b 128M --repeats 1 # more than the default end
says ' 134217728 '

# BW_DEV stands in for --devices: one name, a list, all GPUs of a mock machine.
check 0 '' mock --gpu 'gfx1100*2,cu=2,vram=64M' -- bench copy -b 64K -e 64K --repeats 1
says '^mockkfd\+amd:0@gfx1100\S* +mockkfd\+amd:1@gfx1100'
BW_DEV=host:0,null check 0 '' bench launch --nodes 5 --repeats 1
says '^host:0 '
says '^null '
BW_DEV=nope check 3 'unknown driver' bench copy
BW_DEV=nope check 0 '' bench copy -b 4K -e 4K --repeats 1 --devices host:0 # the option wins
BW_WAIT_MS=1000 check 4 'sdma' mock --gpu 'gfx1100*2,cu=2,vram=64M' --fault sdma0:hang,gpu=1 -- bench copy -b 64K -e 64K --repeats 1

# A range holds something, or is refused.
check 2 '-b: at least 1' bench gemm -b 0 -e 1
check 2 '-e: at least 1' bench copy -e 0
check 2 '-i: at least 1' bench all2all -i 0
check 0 '' bench gemm -e 1 --repeats 1
says '^host:0 +f16 +1 '
check 0 '' bench copy -e 100 --repeats 1
says '^host:0 +memory +100 '
check 2 'sizes are at most 65536' bench gemm -b 9223372036854775808

check 0 '' bench all2all -b 64 -e 64 -n 1 -g 3
says '^# rank  2: host:2'
check 0 '' bench all2all -b 64 -e 64 -n 1 -g 2 --devices 'mockkfd+amd@gfx1100*4,cu=2,vram=64M'
says '^# rank  1: mockkfd'
check 2 '-g 3: 2 devices' bench all2all -g 3 --devices host:0,host:1
check 2 'from 1 to 64' bench allreduce -g 65
# As nccl-tests users type it: sizes per rank, factors or steps, letters in either case.
check 0 '' bench all2all -b 4K -e 64k -f 4 -w 0 -n 3
says '^# +size +count +type +redop +root +time +algbw +busbw +#wrong +time +algbw +busbw +#wrong'
says '^ +16384 +1024 +float +none +-1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +0 +[0-9.]+ +[0-9.]+ +[0-9.]+ +0'
says '^# Wrong elements: 0 OK'
says 'memcpy, one thread, in between: [0-9.]+ GB/s; ratio [0-9.]+'
check 0 '' bench allreduce --minbytes 8KB --maxbytes=8KiB --stepfactor 2 --ngpus 2 --iters 2 --warmup_iters 0 --check 1 --op max --datatype half \
  --root 0 --nthreads 1 --agg_iters 1 --average 2 --parallel_init 0 --blocking 0 --cudagraph 0
says '^ +8192 +4096 +half +max +-1 '
check 0 '' bench all2all -b 1mb -e 1M --stepbytes 1K -g 2 -n 1 -c 1 -t 1 -a 1 -z 0 -G 0
says '^ +1048576 +131072 +float +none '
checks=$((checks + 1)) # each long name, and each option that has one value, is explained
for word in $(grep -oP '^(ALIAS|FIXED)\("\K[^"]+' "$source_dir/tools/nccl.def"); do
  sed -n 's/\\-/-/g; /^.SH NCCL/,/^.SH JSON/p' "$source_dir/docs/man/bellwire-bench.1" | grep -qE -- "[( ]$word[ ,;:)]" || complain 'bellwire-bench(1), nccl-tests' "$word" 'nothing of it'
done
check 2 '-c 0: data are always checked' bench all2all -c 0
check 2 '-c 20: data are always checked' bench allreduce --check=20
check 2 '-z 1: runs are submitted one behind' bench all2all -z 1
check 2 '-G 5: each run replays a graph' bench all2all --cudagraph 5
check 2 '-t 8: one thread drives all ranks; -g says' bench all2all -t 8
check 2 '-r all: neither all2all nor allreduce has a root' bench allreduce -r all
check 2 '-a 4: one process times' bench all2all -a 4
check 2 '-a 0 1: one process times' bench all2all -a '0 1'
check 2 '-F x.csv: .*--json' bench all2all --output_file x.csv
check 2 '-T 5: .*BW_WAIT_MS' bench all2all -T 5
check 2 '-b is given twice' bench all2all -b 1K --minbytes 1K
check 2 'copy has no -c; its options: --devices -b' bench copy -c 1
check 0 '' bench all2all -d all -b 1K -e 2K -f 2 -g 2 -n 1 -w 0
[ "$(grep -cE '^ +(1024|2048) +[0-9]+ [ a-z0-9]+ none +-1 .* 0 .* 0$' <<<"$out")" = 20 ] || complain "$last" 'two sizes of ten types' "$out"
check 0 '' bench allreduce -d all -o all -b 1K -e 1K -g 2 -n 1 -w 0 --json
document bench
for pair in float:avg half:prod int8:min uint64:max double:sum; do
  tr -d ' \n\t' <<<"$out" | grep -qF "\"type\":\"${pair%:*}\",\"redop\":\"${pair#*:}\"" || complain "$last" "a row of $pair" "$out"
done
[ "$(grep -c '"redop": *"avg"' <<<"$out")" = 4 ] || complain "$last" 'averages of the four floating-point types' "$out"
check 0 '' bench allreduce -d int32 -o all -b 1K -e 1K -g 2 -n 1 -w 0
says '^# int32 avg: averages of i32'
check 1 'averages of i32' bench allreduce -d int32 -o avg -b 1K -e 1K -g 2 -n 1 -w 0
check 1 'does not travel as f16' bench allreduce -d int32 -o all --transport half -b 1K -e 1K -g 2
for size in 1KBB 1B 1TB 1.5M B KB 1KiBB '1K B'; do check 2 'is not a number' bench all2all -b "$size"; done
check 0 '' bench all2all -b 8 -e 24 -i 8 -n 1 --devices host:0,host:1,host:2 # 0, 1 and 2 elements for each peer
says '^ +0 +0 +float'
says '^ +12 +1 +float'
says '^ +24 +2 +float'
check 0 '' bench all2all --devices 'mockkfd+amd@gfx1100*3,cu=2,vram=64M' -b 100001 -e 100001 -n 2 -d int8 --plot "$work/pairs.svg" --json
says '"count": *33333'
checks=$((checks + 1))
[ "$(grep -c '<rect' "$work/pairs.svg")" = 10 ] && [ "$(tail -n 1 "$work/pairs.svg")" = '</svg>' ] || complain "$last" 'a picture of 9 cells' "$(cat "$work/pairs.svg")"
check 2 "-d: 'string' .*there are: float, half, bfloat16, .*, int64, uint64, all$" bench all2all -d string
check 2 "--transport: 'float16' .*there are: float, half, .*, uint64$" bench allreduce --transport float16
check 1 'no/where' bench all2all -b 64 -e 64 -n 1 --plot "$work/no/where.svg"
says '^# Average bus bandwidth' # what was measured is not lost
check 1 'no/where' bench all2all -b 64 -e 64 -n 1 --json --profile "$work/no/where"
is_json
says '"profile": *\{'
says '"matrix_gb_per_s"'
check 2 'from 1 to' bench all2all -n 0
# The schedule, timed on a model: presets by name and by what fits, files, and what is none.
boxes='mockkfd+amd@gfx1100*8,cu=2,vram=256M'
check 0 '' bench all2all --devices "$boxes" -b 1M -e 1M -n 1
says '^# Modelled on 8xRX7900XTX, last size: algbw [0-9.]+ GB/s, (0.9[0-9]+|1.000) of the bound of 36.00;'
check 0 '' bench all2all --devices "$boxes,xgmi=14" -b 16M -e 16M -n 1
says '^# Modelled on 8xMI300X, .* (0.9[0-9]+|1.000) of the bound of 512.00;'
check 0 '' bench all2all --devices "$boxes" -b 64K -e 64K -n 1 --model 8xMI300X
says '^# 2 of 16 engines of each GPU were used: .*xgmi=N'
check 0 '' bench all2all --devices "$boxes" -b 64K -e 64K -n 1 --model "$source_dir/data/topologies/8xMI350X.json" --json
says '"file": *".*8xMI350X.json"'
check 0 '' bench all2all --devices 'mockkfd+amd@gfx1100*9,cu=2,vram=64M' -b 4K -e 4K -n 1 --json # no preset of nine
says '"model": *null'
echo '{"gpus": 2' >"$work/cut.json"
check 1 'cut.json: not JSON at offset' bench all2all --devices "$boxes" -b 64K -e 64K -n 1 --model "$work/cut.json"
check 1 "no topology 'tpu'.*8xMI300X" bench all2all --devices "$boxes" -b 64K -e 64K -n 1 --model tpu
check 2 'model is for mock GPUs' bench all2all -b 64K -e 64K -n 1 --model 8xMI300X
check 3 'there are' bench all2all --devices 'mockkfd+amd@gfx90a*2'

# All-reduce, by every strategy; what travels is asked for; what is wrong is refused by name.
for strategy in naive ring direct tree auto; do
  check 0 '' bench allreduce -b 4000 -e 4000 -w 0 -n 1 --strategy $strategy
  says '^ +4000 +1000 +float +sum +-1 .* 0 +[0-9.]+ +[0-9.]+ +[0-9.]+ +0$'
done
for op in prod min max avg; do
  check 0 '' bench allreduce -b 100 -e 100 -w 0 -n 1 -d half -o $op --devices host:0,host:1,host:2
  says "^ +100 +50 +half +$op +-1 "
done
check 0 '' bench allreduce -b 1K -e 1K -w 0 -n 1 --transport bfloat16 --devices 'mockkfd+amd@gfx1100*4,cu=2,vram=64M'
says '^# Modelled on 8xRX7900XTX'
check 2 "o: 'mean'.*sum, prod, min, max, avg" bench allreduce -o mean
check 2 "strategy: 'star'.*naive, ring, direct, tree" bench allreduce --strategy star
check 1 'i32 does not travel as f16' bench allreduce -b 64 -e 64 -d int32 --transport half
check 1 'averages of i64' bench allreduce -b 64 -e 64 -d int64 -o avg
check 1 'rank 1 is of another family' bench allreduce -b 64 -e 64 --devices host:0,mockkfd+amd@gfx1100
check 2 'all2all has no --strategy' bench all2all --strategy ring
finish
