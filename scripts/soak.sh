#!/usr/bin/env bash
# soak.sh: what is too long for CI: the whole suite under every sanitizer and under a timer, ten minutes of each fuzzer, random graphs on
# every kind of device and all interleavings of many small ones, from a new seed that is printed, the benches with their figures printed.
# BW_SOAK_SECONDS: of random graphs on each kind of device (300). BW_SOAK_SCENES: small graphs that are explored (5000). BW_SEED: theirs.
set -eu -o pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck disable=SC2086
bw_install $bw_build_packages $bw_test_packages
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
export BW_SEED=${BW_SEED:-$(date +%s)}
BW_FUZZ_SECONDS=${BW_SOAK_SECONDS:-300} "$bw_root/build/release/tests/unit.hcq.fuzz"
BW_SCENES=${BW_SOAK_SCENES:-5000} "$bw_root/build/release/tests/unit.hcq.explore"
for bench in launch copy gemm emulator compile schedule; do
  "$bw_root/build/release/bellwire" bench "$bench"
done
