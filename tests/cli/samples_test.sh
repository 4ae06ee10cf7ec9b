#!/usr/bin/env bash
# Goal: the samples run as README says: on the device that is named, else on a GPU, else on the mock with one line that says so.
set -u
. "$(dirname "$0")/lib.sh"
bellwire=$(dirname "$bellwire")/samples/vector_add
[ -x "$bellwire" ] || { echo "skipped: no samples/vector_add in this build"; exit 77; }

check 0 '' mockdrm+amd@gfx1100
says '^mockdrm\+amd:0@gfx1100: 1000 sums, 0 wrong$'
check 0 '' # BW_DEV
says '^mockkfd\+amd:0@gfx1100: 1000 sums, 0 wrong$'
check 1 'vector_add: .*there are: ' tpu
unset BW_DEV
if [ -e /dev/kfd ] || ls /dev/dri/renderD* >/dev/null 2>&1; then
  echo 'a GPU may be here: the default is not checked'
else
  check 0 '^vector_add: no GPU in this machine: using the mock mockkfd\+amd:0@gfx1100$'
  says '^mockkfd\+amd:0@gfx1100: 1000 sums, 0 wrong$'
fi

# README's command that builds one sample names a target, and what it makes.
build=$(dirname "$(dirname "$bellwire")")
named=$(grep -oE -- '--target sample_[a-z_]+ && build/release/samples/[a-z_]+' "$source_dir/README.md")
checks=$((checks + 1))
[ -n "$named" ] && [ -x "$build/samples/${named##*/}" ] && [ "sample_${named##*/}" = "$(cut -d ' ' -f 2 <<<"$named")" ] ||
  complain 'README' 'a command that builds samples/vector_add' "$named"
finish
