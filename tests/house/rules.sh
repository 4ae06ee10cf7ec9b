#!/usr/bin/env bash
# Goal: the rules that hold everywhere, checked by machine: arrows between layers, no writable file-scope data in the
# libraries, short files, no printing or exiting in the library, nothing of one machine in the tree.
set -u
source_dir=$1 build_dir=$2
cd "$source_dir" || exit 1
failed=0
complain() { # RULE LINES
  [ -z "$2" ] && return
  echo "rule broken: $1"
  echo "$2" | head -n 20 | sed 's/^/  /'
  failed=1
}
includes() { # DIRECTORY PATTERN: include lines of the directory's sources that match
  find "$1" -name '*.[ch]' -print0 2>/dev/null | xargs -0 -r grep -nE "^#include \"($2)" || true
}

# Layers: arrows run down only.
complain "base includes nothing above" "$(includes base '(iface|mem|drivers|hcq|compiler|mock|tools|bench)/')"
complain "mem includes base only" "$(includes mem '(iface|drivers|hcq|compiler|mock|tools|bench)/')"
complain "iface includes base and mem only" "$(includes iface '(drivers|hcq|compiler|mock|tools|bench)/')"
complain "drivers include nothing above and no mock" "$(includes drivers '(hcq|compiler|mock|tools|bench)/')"
complain "hcq includes nothing above; mocks only through their public API" "$(includes hcq '(compiler|mock|tools|bench)/')"
complain "compiler includes no tool" "$(includes compiler '(mock|tools|bench)/')"
complain "two readings: the mock includes nothing of the drivers" "$(includes mock '(iface|mem|drivers|hcq|compiler|tools|bench)/')"
for family in amd nv qcom; do
  for other in amd nv qcom; do
    [ $family = $other ] || complain "drivers/$family does not include drivers/$other" "$(includes drivers/$family "drivers/$other/")"
  done
done

# No hidden state.
archives=$(find "$build_dir" -maxdepth 1 -name 'libbellwire*.a')
# Constant tables with pointers lie in .data.rel.ro, which the loader makes read-only: only .data and .bss are writable.
# shellcheck disable=SC2086
complain "no writable file-scope data in the libraries" \
  "$(objdump -t $archives 2>/dev/null | grep -E ' O (\.data|\.bss|\.tdata|\.tbss)(\.[a-zA-Z_]+)?\s' | grep -vE '\.data\.rel\.ro|__(asan|tsan|sancov|odr|ubsan|llvm)|\*\.LASAN|\.L' || true)"
library_dirs="base iface mem drivers hcq compiler mock"
# shellcheck disable=SC2086
complain "the library never prints or exits" \
  "$(grep -rnE '(^|[^a-zA-Z_>.])(f?printf|puts|fputs|perror|exit|abort)\(' $library_dirs --include='*.c' | grep -vE 'snprintf|^[^:]*:[0-9]+: *(\*|/\*)' || true)"
complain "the program prints through tools/print.h, where foreign text is escaped" \
  "$(grep -nE '(^|[^a-zA-Z_>.])(v?f?printf|puts|fputs|putchar|fputc|putc|perror)\(' tools/*.c bench/*.c | grep -vE '^tools/(print|progress)\.c' || true)"
# shellcheck disable=SC2086
complain "the environment is read at the edge only (hcq/ctx*.c)" "$(grep -rnE '(^|[^a-z_])(secure_)?getenv\(' $library_dirs --include='*.c' | grep -v '^hcq/ctx' || true)"

calls='open|openat|read|write|pread|pwrite|ioctl|mmap|munmap|mprotect|madvise|poll|fopen|fread|fwrite|usleep|nanosleep|clock_gettime|f?stat|close|unlink|rename|opendir|readdir|fcntl|lseek|syscall'
complain "OS calls go through struct bw_sys" \
  "$(grep -rnE "(^|[^a-zA-Z_>.])($calls)\(" base iface mem hcq drivers --include='*.[ch]' | grep -vE '^iface/sys_host|: *(\*|/\*)|clock_gettime\(CLOCK_MONOTONIC, &deadline\)' || true)"

# Public headers are all that a user has, and their macros stand beside the user's.
complain "public headers name no file that is not installed" "$(grep -nE '(base|iface|mem|hcq|drivers|compiler|mock|tools|bench)/[a-z0-9_]+\.[ch]' include -r || true)"
complain "public headers define names with BW_ or bw_ only" "$(grep -nE '^ *# *(define|undef) +[A-Za-z0-9_]' include -r | grep -vE '# *(define|undef) +(BW_|bw_)' || true)"

# Size: 800 lines, tables apart.
complain "files stay below 800 lines" "$(find base iface mem drivers hcq compiler mock bench tools tests samples include -name '*.[ch]' ! -name '*table*' ! -name '*_regs*' ! -name '*_ops*' ! -name '*.inc' -exec wc -l {} + | awk '$2 != "total" && $1 > 800')"

# What the texts for people name is there. A word in capitals, and the N of gfxN, stand for any.
texts="README.md CONTRIBUTING.md docs/design.md docs/man/*.1"
folders=$(find . -mindepth 1 -maxdepth 1 -type d ! -name '.*' ! -name build -printf '%f|')
# shellcheck disable=SC2086
named=$(sed 's/\\-/-/g; s/\\e//g' $texts | {
  grep -oP "(?<![A-Za-z0-9_./-])(${folders%|})/[A-Za-z0-9_./*-]*[A-Za-z0-9_/*]" # a path from the top
  :
})
bare=$(grep -ohP '`[A-Za-z0-9_]+\.(c|h|def|sh|md)`' README.md CONTRIBUTING.md docs/design.md | tr -d '`') # a file of some folder
complain "what README, CONTRIBUTING, the design and the man pages name exists" "$(
  for path in $(echo "$named" | sort -u | sed -E 's/[A-Z]{4,}|(gfx)N/\1*/g' | tr '*' '%'); do
    compgen -G "${path//%/*}" >/dev/null || echo "$path"
  done
  for name in $(echo "$bare" | sort -u | sed -E 's/[A-Z]{4,}|(gfx)N/\1%/g'); do
    [ -n "$(find . -path ./build -prune -o -name "${name//%/*}" -print -quit)" ] || echo "$name"
  done
)"
complain "README's opset is BW_ONNX_OPSET_MAX" "$(
  grep -q "opset 1 to $(grep -oP 'BW_ONNX_OPSET_MAX = \K[0-9]+' compiler/onnx/schema.h);" README.md || grep -n 'opset' README.md
)"
complain "README's count of ONNX's cases is that of tests/conformance/expected.txt" "$(
  passing=$(sed -n 's/^passes //p' tests/conformance/expected.txt) failing=$(grep -c '^[a-z_-]*/' tests/conformance/expected.txt)
  grep -q "; $passing of the $((passing + failing)) cases" README.md || grep -n 'cases' README.md
)"
complain "samples/vector_add.c has less than the 100 lines that README tells of" "$(wc -l samples/vector_add.c | awk '$1 >= 100')"

# Nothing undone, nothing of one machine.
complain "nothing is left undone in words" "$(grep -rnE '\b(TODO|FIXME|XXX|HACK)\b' $library_dirs tools bench samples include --include='*.[ch]' || true)"
complain "no path of one machine" "$(git ls-files 2>/dev/null | grep -v '^tests/house/' | xargs -r grep -nE '(^|[^A-Za-z0-9_./])/(work|farm|root)/[a-z.]' 2>/dev/null || true)"
complain "no test that cannot fail" "$(grep -rnE 'CU_ASSERT(_TRUE)?\( *(1|true) *\)|CU_PASS' tests --include='*.c' || true)"

[ $failed = 0 ] && echo "house rules hold"
exit $failed
