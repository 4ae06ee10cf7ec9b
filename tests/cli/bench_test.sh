#!/usr/bin/env bash
# Goal: each bench runs, prints a table for people and the documented keys as JSON.
set -u
. "$(dirname "$0")/lib.sh"

check 0 '' bench launch --nodes 20 --repeats 5
says '^null '
check 0 '' bench launch --nodes 20 --repeats 5 --json --devices null,mockkfd+amd@gfx1100
says '"host_ns_per_node": *[0-9]'
says '"device": *"mockkfd\+amd:0@gfx1100"'
check 0 '' bench copy -b 4K -e 64K -f 16 --json
says '"gb_per_s": *[0-9]'
says '"memcpy_gb_per_s": *[0-9]'
check 3 'unknown driver' bench launch --devices tpu
"$bellwire" bench nothing >"$work/.out" 2>"$work/.err"
status=$?
[ $status = 2 ] && grep -q "no bench named 'nothing'" "$work/.err" && grep -q '^  launch' "$work/.err" ||
  complain "bench nothing" "exit code 2 and the list of benches" "$status"
finish
