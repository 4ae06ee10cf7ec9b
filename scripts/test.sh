#!/usr/bin/env bash
# test.sh [FILTER]: installs what is missing, builds, runs the whole test suite, then the quick tests under AddressSanitizer and
# UndefinedBehaviorSanitizer, those with several threads under ThreadSanitizer, half a minute of random graphs, faults and kills, and each
# fuzzer for a minute. With FILTER (a ctest regular expression), the tests of that name alone.
set -eu -o pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
filter=${1:-.}

# shellcheck disable=SC2086
bw_install $bw_build_packages $bw_test_packages
bash "$bw_root/scripts/fetch-models.sh" || echo "some models could not be fetched: their tests are skipped and counted" >&2

run_suite() { # PRESET TARGET CTEST-ARGUMENTS...
  local preset=$1 target=$2 log=$bw_root/build/$1.log
  shift 2
  mkdir -p "$bw_root/build"
  echo "== $preset"
  bw_build "$preset" "$target" >"$log" 2>&1 || { tail -n 50 "$log"; return 1; }
  (cd "$bw_root/build/$preset" && ctest -j 2 --output-on-failure "$@")
}

run_suite release all -R "$filter"
[ $# = 0 ] || exit 0
run_suite asan all -L 'unit|scenario' -LE slow
run_suite tsan threads_tests -L threads -LE slow
BW_SEED=1 bash "$bw_root/scripts/soak.sh" 26 # the same inputs each time: without arguments soak.sh looks for new ones
bash "$bw_root/scripts/fuzz.sh" 60 1 # the same inputs each time: soak.sh looks for new ones
