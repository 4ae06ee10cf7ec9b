# Shared by the scripts of this folder; sourced, never run. Everything a fresh Debian machine lacks is installed here.

bw_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bw_models=${BW_MODELS:-$bw_root/build/models}

# What building and running needs.
bw_build_packages="cmake ninja-build gcc libc6-dev pkg-config libpci-dev liburing-dev libdrm-dev libpng-dev libxxhash-dev
 libcjson-dev libmsgpack-dev llvm-19-dev libcunit1-dev"
# What the tests need beyond that: compilers for test kernels, conformance data, sanitizer and fuzzer runtimes.
bw_test_packages="binutils git clang-19 lld-19 llvm-19 libclang-rt-19-dev libonnx-testdata"

bw_as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# bw_install PACKAGE...: installs those that are missing; quick when none is.
bw_install() {
  local missing="" package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
  done
  [ -z "$missing" ] && return 0
  echo "installing:$missing" >&2
  local get="apt-get -o DPkg::Lock::Timeout=500 -qq"
  bw_as_root $get update >/dev/null || true
  # shellcheck disable=SC2086
  bw_as_root env DEBIAN_FRONTEND=noninteractive $get install -y --no-install-recommends $missing >/dev/null
}

# bw_build PRESET [TARGET...]
bw_build() {
  local preset=$1
  shift
  [ -f "$bw_root/build/$preset/build.ninja" ] || (cd "$bw_root" && cmake --preset "$preset" >/dev/null)
  cmake --build "$bw_root/build/$preset" ${1:+--target "$@"}
}

# bw_build_shown PRESET TARGET...: the same with nothing on standard output. What takes over a second says on standard error
# that it builds, on a terminal with what ninja counts; a build that fails shows what it printed.
bw_build_shown() {
  local log status=0 ticks=0 job
  log=$(mktemp)
  bw_build "$@" >"$log" 2>&1 &
  job=$!
  trap 'kill $job 2>/dev/null; rm -f "$log"; exit 130' INT TERM
  while kill -0 $job 2>/dev/null; do
    sleep 0.2
    ticks=$((ticks + 1))
    if [ $ticks -lt 5 ]; then
      continue
    elif [ -t 2 ]; then
      printf '\rbuilding build/%s %s (minutes the first time)\033[K' "$1" "$(grep -oE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 1)" >&2
    elif [ $ticks = 5 ]; then
      echo "building build/$1 (minutes the first time)" >&2
    fi
  done
  wait $job || status=$?
  trap - INT TERM
  if [ -t 2 ] && [ $ticks -ge 5 ]; then printf '\r\033[K' >&2; fi
  if [ $status != 0 ]; then cat "$log" >&2; fi
  rm -f "$log"
  return $status
}
