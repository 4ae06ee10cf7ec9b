#!/usr/bin/env bash
# Goal: where the system gives too little (stack, address space, threads), one line says what and how much; never a crash, never
# a wait for what will not come (a hang is the test's own limit).
set -u
. "$(dirname "$0")/lib.sh"
digits=$source_dir/samples/digits/digits.onnx
export BW_CACHE=
stack_kib=$(ulimit -s)
limited() { # EXPECTED PATTERN PREFIX... -- ARGS...: bellwire ARGS behind PREFIX
  local expected=$1 pattern=$2 status
  local -a prefix=()
  shift 2
  while [ "$1" != -- ]; do prefix+=("$1") && shift; done
  shift
  checks=$((checks + 1))
  last="${prefix[*]} bellwire $*"
  "${prefix[@]}" "$bellwire" "$@" >"$work/.out" 2>"$work/.err"
  status=$?
  [ "$status" = "$expected" ] || complain "$last" "exit code $expected" "$status, $(cat "$work/.err")"
  [ "$(grep -c '' "$work/.err")" = 1 ] && grep -qE -- "$pattern" "$work/.err" || complain "$last" "one line like '$pattern'" "$(cat "$work/.err")"
}

for device in host:0 mockkfd+amd@gfx1100; do
  for kib in 64 512 1023; do
    limited 1 "a stack of $kib KiB is too small, at least 1024 are needed: raise ulimit -s" prlimit --stack=$((kib << 10)) -- run "$digits" --device $device
  done
  if [ "$stack_kib" = unlimited ] || [ "$stack_kib" -ge 1024 ]; then
    prlimit --stack=$((1 << 20)) "$bellwire" run "$digits" --device $device --top 1 >"$work/.out" 2>"$work/.err" || complain "run on $device with 1 MiB of stack" "exit code 0" "$(cat "$work/.err")"
  fi
done

# Address space: enough for the program and its libraries (not for a sanitizer's shadow), too little for what it then asks for.
space() { # MIB: whether the program starts
  prlimit --as=$(($1 << 20)) "$bellwire" --version >/dev/null 2>&1
}
least=100
while [ $least -lt 1000 ] && ! space $least; do least=$((least + 10)); done
if space $least; then
  for more in 0 100 400; do
    limited 1 'mock: system memory: 32\.0 GiB of address space \(ENOMEM\)\. .*ulimit -v' prlimit --as=$(((least + more) << 20)) -- run "$digits" --device mockkfd+amd@gfx1100
  done
  limited 1 'memory of GPU 0: 48\.0 GiB of address space' prlimit --as=$((40 << 30)) -- run "$digits" --device mockkfd+amd@gfx1100
  limited 1 'ENOMEM.*this process may have [0-9]+ MiB of address space|worker thread|ulimit -v' prlimit --as=$(((least + 60) << 20)) -- run "$source_dir/tests/cli/models/relu.onnx" --device host:0 --shape x=10000x10000
fi

# No thread beside the first: root may always have one, others have none.
alone=(prlimit --nproc=1)
[ "$(id -u)" != 0 ] || alone=(setpriv --reuid 65534 --regid 65534 --clear-groups prlimit --nproc=1)
if "${alone[@]}" "$bellwire" --version >/dev/null 2>&1 && "${alone[@]}" test -r "$digits"; then
  limited 1 'host: (worker thread 1|thread of queue 0).*no more threads.*ulimit -u' "${alone[@]}" -- run "$digits" --device host:0
  limited 1 'CREATE_QUEUE.*ENOMEM.*no thread for mec queue 0.*ulimit -u' "${alone[@]}" -- run "$digits" --device mockkfd+amd@gfx1100
fi
finish
