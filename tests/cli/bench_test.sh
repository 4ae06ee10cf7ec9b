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
check 2 "no bench named 'nothing'; there are: launch, copy, " bench nothing
check 2 'a name is needed; there are: launch, copy, ' bench
check 0 '' bench copy -b 128M --repeats 1 # more than the default end
says ' 134217728 '
finish
