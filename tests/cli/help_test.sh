#!/usr/bin/env bash
# Goal: what --help says, what the man page says and what the program takes are the same: summary, usage, every option.
set -u
. "$(dirname "$0")/lib.sh"

same() { # WHAT EXPECTED OBSERVED
  checks=$((checks + 1))
  [ "$2" = "$3" ] || complain "$1" "$2" "$3"
}
plain() { sed 's/\\-/-/g; s/\\&//g; s/\\e/\\/g'; } # roff to text, as far as these pages use it
section() { sed -n "/^\.SH $2\$/,/^\.SH /p" "$1" | plain; }
options() { grep -oE '(^|[^A-Za-z0-9-])--?[a-z][a-z-]*' | grep -oE -- '--?[a-z][a-z-]*$' | sort -u; }
program_page=$source_dir/docs/man/bellwire.1

commands=$("$bellwire" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
same "number of subcommands" "$(grep -c '^X(' "$source_dir/tools/commands.def")" "$(echo "$commands" | wc -l)"
for name in $commands; do
  page=$source_dir/docs/man/bellwire-$name.1
  check 0 '' "$name" --help
  summary=$(head -n 1 <<<"$out")
  usage=$(sed -n '/^usage:/,/^$/p' <<<"$out" | tr -s '\n ' ' ' | sed "s/^usage: bellwire $name //; s/ $//")
  same "summary in $page" "bellwire-$name - $summary" "$(section "$page" NAME | sed -n 2p)"
  same "usage in $page" "$usage" "$(section "$page" SYNOPSIS | sed -n 3p)"
  same "summary of $name in $program_page" "$summary" "$(grep -A1 "^\.BR bellwire.-$name (1)" "$program_page" | tail -n 1 | plain)"
  same "summary of $name in bellwire --help" "$summary" "$("$bellwire" --help | sed -n "s/^  $name  *//p")"

  # Options: in the usage, explained in the page, taken by the program. -o is short for --output (but of bench, where it is what
  # nccl-tests have it for), -h for --help.
  short=-o
  [ "$name" = bench ] && short=-h
  listed=$(options <<<"$usage")
  explained=$({ section "$page" OPTIONS | grep '^\.B'; section "$page" JSON; } | options | grep -vx -- "$short")
  same "options explained in $page" "$listed" "$explained"
  taken=$(grep -ohE 'bw_args_is\([a-z&]*args, "[^"]*"\)' "$source_dir/tools/$name"*.c | grep -oE '"[^"]*"' | tr -d '"' | grep -vx -- "$short" |
    cat - <(grep -q 'args[.>-]*json' "$source_dir/tools/$name.c" && [ "$name" != mock ] && echo --json) | sort -u)
  same "options that $name takes" "$listed" "$taken"
  for option in $listed; do
    takes_value=$(grep -cE -- "[[ ]$option [A-Z]" <<<"$usage ")
    [ "$name" = mock ] || [ "$takes_value" = 0 ] || check 2 "$option needs a value" "$name" "$option"
  done
  check 2 "unknown option --no-such-option" "$name" --no-such-option
  check 2 "unknown option -Z" "$name" -Z
done
# Options with lists in their usage.
check 2 '--dump needs a value' compile m.onnx --arch host --dump
check 2 '--arg needs a value' launch --arg
check 2 '--kind needs a value' decode --kind
check 2 '--gpu needs a value' mock --gpu
check 2 '--fault needs a value' mock --fault

# The environment: what the library reads is what the page explains.
read_by_library=$(grep -ohE 'getenv\("BW_[A-Z_]*"\)|number_read\("BW_[A-Z_]*"' "$source_dir"/hcq/ctx*.c | grep -oE 'BW_[A-Z_]*' | sort -u)
same "environment in $program_page" "$read_by_library" "$(section "$program_page" ENVIRONMENT | grep '^\.B' | grep -oE 'BW_[A-Z_]*' | sort -u)"

# Each bench refuses what it does not read, and says what it reads.
check 2 'emulator has no --devices; its options: none' bench emulator --devices null
check 2 'launch has no -b; its options: --devices --nodes --repeats' bench launch -b 4
check 2 'compile has no --nodes' bench compile --nodes 3
check 2 '-b is more than -e' bench copy -b 2M -e 1M
check 2 'from 2 to' bench copy -f 1
check 2 'from 1 to' bench launch --nodes 4294967297
check 2 'not a number' bench copy -e 1T
check 2 'json belongs to the command' mock --json -- devices
finish
