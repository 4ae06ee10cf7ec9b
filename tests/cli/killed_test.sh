#!/usr/bin/env bash
# Goal (S1): `bellwire` is killed at random moments, in the middle of an all-reduce or all-to-all over two or eight mock GPUs, while
# it fills the cache of kernels that all share: the next run has the right bytes.
# BW_SOAK_SECONDS goes on for so long; the moments follow from BW_SEED, which is printed.
set -u
. "$(dirname "$0")/lib.sh"
RANDOM=${BW_SEED:=20240607}
echo "BW_SEED=$BW_SEED"
measures=(allreduce all2all)
counts=(2 8)
end=$((SECONDS + ${BW_SOAK_SECONDS:-6})) kills=0

run() { # COUNT MEASURE
  echo bench "$2" --devices "mockkfd+amd@gfx1100*$1" -b 4K -e 64K -f 4 -n 4 -w 1 --json
}

whole_run() {
  # shellcheck disable=SC2046
  check 0 '' $(run "$@")
  is_json
  checks=$((checks + 1))
  [ "$(echo "$out" | grep -cE '"wrong": *0,?$')" = 6 ] || complain "$last" 'three sizes, out of place and in place, with nothing wrong' "$out"
}

while [ "$SECONDS" -lt "$end" ] && [ "$failures" = 0 ]; do
  [ $((RANDOM % 3)) = 0 ] && rm -rf "$BW_CACHE" # so that there is something to compile, and to be killed at
  for _ in 1 2 3; do
    # shellcheck disable=SC2046
    "$bellwire" $(run "${counts[RANDOM % 2]}" "${measures[RANDOM % 2]}") >/dev/null 2>&1 &
    child=$!
    sleep "0.$(printf %03d $((RANDOM % 400)))"
    kill -9 $child 2>/dev/null && kills=$((kills + 1))
    wait $child 2>/dev/null
  done
  whole_run "${counts[RANDOM % 2]}" "${measures[RANDOM % 2]}"
done
checks=$((checks + 1))
[ "$kills" -gt 2 ] || complain 'killing' 'some that were still alive' "$kills"
echo "$kills killed"
finish
