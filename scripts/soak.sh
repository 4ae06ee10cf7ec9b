#!/usr/bin/env bash
# soak.sh [SECONDS]: what is too long for CI. First, for six hours or SECONDS, random graphs on every kind of device, on two to eight
# mock GPUs while random faults strike and random processes are killed in the middle of their replays, from a new seed that is printed
# (BW_SEED repeats it). Without SECONDS then the whole suite under every sanitizer and under a timer, ten minutes of each fuzzer, all
# interleavings of many small graphs (BW_SOAK_SCENES, 5000), the benches with their figures printed.
set -eu -o pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck disable=SC2086
bw_install $bw_build_packages $bw_test_packages
seed=${BW_SEED:-$(date +%s)}
unset BW_SEED # the suite has its own
seconds=${1:-$((6 * 60 * 60))}

# Random graphs and nothing else on 13 kinds of devices; faults and deaths on 4 kinds of machines, by each of two ways to a GPU;
# processes that are really killed: a part of the time each, at least the rounds that CI has.
soak_graphs() {
  local parts=$((13 + 2 * 4 + 5)) tests=$bw_root/build/release/tests
  local slice=$((seconds / parts))
  echo "== $seconds s of random graphs, faults and kills, BW_SEED=$seed"
  bw_build release unit.hcq.fuzz scenario.hcq_soak scenario.hcq_soak.drm bellwire-cli json_check >/dev/null
  BW_SEED=$seed BW_FUZZ_SECONDS=$slice "$tests/unit.hcq.fuzz"
  BW_SEED=$seed BW_SOAK_SECONDS=$slice "$tests/scenario.hcq_soak"
  BW_SEED=$seed BW_SOAK_SECONDS=$slice "$tests/scenario.hcq_soak.drm"
  BW_SEED=$seed BW_SOAK_SECONDS=$((5 * slice)) bash "$bw_root/tests/cli/killed_test.sh" "$bw_root/build/release/bellwire" "$bw_root" "$tests/json_check"
}

soak_graphs
[ $# = 0 ] || exit 0
bash "$bw_root/scripts/fetch-models.sh" || true
for preset in release asan tsan; do
  bw_build "$preset" >/dev/null
  # ThreadSanitizer writes a file of its own, longer than the limit on files that cli.cache and cli.output set, and leaves
  # 1.5 TiB of addresses, as much as the VRAM of cli.mock's eight GPUs.
  [ "$preset" = tsan ] && skip='^cli\.(cache|mock|output)$' || skip='^$'
  (cd "$bw_root/build/$preset" && ctest --output-on-failure --timeout 3600 -E "$skip")
done
(cd "$bw_root/build/release" && BW_TEST_TIMER=1 ctest --output-on-failure --timeout 3600 -L 'unit|scenario')
bash "$bw_root/scripts/fuzz.sh" 600
BW_SEED=$seed BW_SCENES=${BW_SOAK_SCENES:-5000} "$bw_root/build/release/tests/unit.hcq.explore"
for bench in launch copy gemm emulator compile schedule; do
  "$bw_root/build/release/bellwire" bench "$bench"
done
