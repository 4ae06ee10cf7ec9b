#!/usr/bin/env bash
# Goal: `bellwire run --profile` writes a trace that a viewer can make sense of, and says where the time went.
set -u
. "$(dirname "$0")/lib.sh"
digits=$source_dir/samples/digits/digits.onnx

traced() { # PATTERN: the trace of the last command holds, and what is in it matches
  local found
  checks=$((checks + 1))
  "$json_check" <"$work/trace" || complain "$last" "JSON" "$(head -c 300 "$work/trace")"
  found=$("$trace_check" <"$work/trace") && echo "$found" | grep -qE -- "$1" || complain "$last" "a trace with '$1'" "$found"
}

check 0 '' run "$digits" --device host:0 --profile "$work/trace"
traced '^7 calls, 1 replays, [0-9]+ flows, [0-9]+ counters, 2 processes, 2 threads$'
says '^ +time us  share   calls    GFLOPS      GB/s  kernel$'
says '^ +[0-9.]+ +[0-9.]+% +1 +[0-9]+\.[0-9]+ +[0-9.]+  fold_8x16x16_by_3x3x3_'
says '^ +busy us  share   calls  of [0-9.]+ us, queue$'
says '^ +[0-9.]+ +[0-9.]+% +7  compute queue 0, host:0$'
says 'compute queue 0, host:0, before kernel fold_8x16x16_[^ ]+: waited for the host, which submitted replay 1 of graph 1$'

# A GPU's copies have queues of their own.
check 0 '' run "$digits" --device mockkfd+amd@gfx1100 --repeat 2 --profile "$work/trace"
traced '^9 calls, 1 replays, [0-9]+ flows, [0-9]+ counters, 2 processes, 3 threads$' # of the last run
says '  copy host -> mockkfd\+amd:0@gfx1100$'
says '  copy mockkfd\+amd:0@gfx1100 -> host$'
says ' 2  copy queue 0, mockkfd\+amd:0@gfx1100$'
says 'copy queue 0, .*, before copy mockkfd[^ ]+ -> host: waited for kernel map_10_[0-9a-f]+ on compute queue 0, mockkfd\+amd:0@gfx1100$'
for key in bytes_read bytes_written flops gb_per_s gflops ticket; do
  grep -q "\"$key\":[0-9]" "$work/trace" || complain "$last" "$key" "$(head -c 2000 "$work/trace")"
done
grep -q '"from":"host","to":"mockkfd+amd:0@gfx1100"' "$work/trace" || complain "$last" "where a copy goes" "$(head -c 2000 "$work/trace")"
grep -q '"name":"copy queue 0 busy","args":{"%":[0-9]' "$work/trace" || complain "$last" "a queue's share" "$(head -c 2000 "$work/trace")"

# The first kernel: 8 x 16 x 16 sums of 3 x 3 x 3 products, and what follows each sum.
check 0 '' run "$digits" --device host:0 --profile "$work/trace" --json
is_json
says '"profile": *\{'
says '"gap_count": *[1-9]'
says '"cause": *"replay"'
flops=$(grep -o '"name":"fold_8x16x16_by_3x3x3[^}]*"flops":[0-9]*' "$work/trace" | grep -o '[0-9]*$')
[ "${flops:-0}" -ge 110592 ] && [ "$flops" -lt 120000 ] || complain "$last" "2 * 55296 flops and a little" "$flops"

# All pieces of a run are in it, one after the other.
check 0 '' run "$source_dir/tests/cli/models/pieces.onnx" --device host:0 --input x=f32:1,2,3,4 --profile "$work/trace"
traced '^2 calls, 2 replays, [0-9]+ flows, [0-9]+ counters, 2 processes, 2 threads$'
says 'output y i64\[1,4\]'

# Many devices: a process each, and replays in flight.
check 0 '' bench all2all --devices 'mockkfd+amd@gfx1100*3,cu=2,vram=64M' -b 64K -e 64K -n 1 --profile "$work/trace"
traced '^27 calls, 3 replays, [0-9]+ flows, [0-9]+ counters, 4 processes, [0-9]+ threads$'
says '^# +[0-9.]+ +[0-9.]+% +3 +0.000 +[0-9.]+  copy mockkfd\+amd:0@gfx1100\*3,cu=2,vram=64M -> mockkfd\+amd:1@gfx1100'
says '^# +[0-9.]+ +[0-9.]+% +[0-9]+  copy queue [01], mockkfd'
check 0 '' bench allreduce --devices host:0,host:1 -b 4K -e 4K -n 1 --profile "$work/trace" --json
is_json
says '"profile": *\{'
traced ' 3 replays, .* 3 processes'
check 1 'none/trace' bench all2all -b 64 -e 64 -n 1 --profile "$work/none/trace"
check 2 'gemm has no --profile' bench gemm --profile "$work/trace"
# A trace that cannot be written does not cost what was said of the run.
check 1 'none/trace' run "$digits" --device host:0 --top 1 --profile "$work/none/trace"
says '^output .*f32'
says '  compute queue 0, host:0$'
check 1 'none/trace' run "$digits" --device host:0 --json --profile "$work/none/trace"
is_json
says '"profile": *\{'

# Without a device nothing is stamped; without --profile nothing is said.
check 2 'evaluator runs on no device: not with --profile' run "$digits" --evaluator --profile "$work/trace"
check 2 'evaluator runs on no device: not with --device' run "$digits" --evaluator --device host:0
check 0 '' run "$digits" --device host:0 --json
! grep -q '"profile"' "$work/.out" || complain "$last" "no profile" "one"

finish
