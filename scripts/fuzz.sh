#!/usr/bin/env bash
# fuzz.sh SECONDS [SEED]: runs every libFuzzer target (tests/fuzz) of the asan build that long, two at a time; SEED repeats a run.
set -eu -o pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
seconds=${1:-60}
seed=${2:-0} # 0: another one each time
mkdir -p "$bw_root/build"
bw_build asan fuzz_targets >"$bw_root/build/fuzz.log" 2>&1 || { tail -n 50 "$bw_root/build/fuzz.log"; exit 1; }

run_target() {
  local target=$1 name work seeds=""
  name=$(basename "$target")
  work=$bw_root/build/asan/corpus/$name
  mkdir -p "$work"
  [ ! -d "$bw_root/tests/fuzz/seeds/$name" ] || seeds=$bw_root/tests/fuzz/seeds/$name
  if [ "$name" = fuzz_onnx ]; then # the small models of the tests are where mutation starts
    cp "$bw_root"/tests/cli/models/*.onnx "$work"
    for path in /usr/share/libonnx-testdata/data/node/*/model.onnx; do
      [ ! -r "$path" ] || cp "$path" "$work/$(basename "$(dirname "$path")")"
    done
  fi
  # shellcheck disable=SC2086
  if "$target" -seed="$seed" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=60 -verbosity=0 -artifact_prefix="$work-" "$work" $seeds \
    >"$work.log" 2>&1; then
    echo "$name: passed, $seconds s, $(find "$work" -type f | wc -l) inputs kept"
  else
    echo "$name: FAILED"
    tail -n 30 "$work.log"
    return 1
  fi
}
export -f run_target
export bw_root seconds seed UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
echo "== fuzz"
find "$bw_root/build/asan" -maxdepth 1 -name 'fuzz_*' -type f -executable | sort | xargs -r -n 1 -P 2 bash -c 'run_target "$0"'
