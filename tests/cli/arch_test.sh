#!/usr/bin/env bash
# Goal: every architecture of the device table either gets code that is marked as its own, or is refused by name before any
# is made, with those that there are; a name that is none of them is wrong usage wherever it is given.
set -u
. "$(dirname "$0")/lib.sh"
digits=$source_dir/samples/digits/digits.onnx
printf '.text\n.p2align 8\nk:\n  s_endpgm\n' >"$work/k.s"
later= # rows that this LLVM does not know
for row in gfx90a:3f gfx942:4c gfx950:4f gfx1100:41 gfx1101:46 gfx1102:47 gfx1200:48 gfx1201:4e; do
  arch=${row%:*} machine=${row#*:}
  rm -f "$work/k.o"
  if "$bellwire" asm --arch "$arch" "$work/k.s" -o "$work/k.o" 2>"$work/why"; then
    check 0 '' asm --arch "$arch" "$work/k.s" -o "$work/k.o"
    observed=$(od -An -tx1 -j48 -N1 "$work/k.o" | tr -d ' ')
    [ "$observed" = "$machine" ] || complain "$last" "e_flags 0x$machine" "0x$observed"
    check 0 '' compile "$digits" --arch "$arch" --dump asm
    says "amdgcn-amd-amdhsa--$arch"
    check 0 '' compile "$digits" --arch "$arch"
    says "launches, for $arch"
  else
    later="$later $arch"
    pattern="architecture '$arch': expected LLVM [0-9]+ or later, observed LLVM [0-9.]+ .*known: .*gfx1100"
    check 2 "$pattern" asm --arch "$arch" "$work/k.s" -o "$work/k.o"
    check 2 "$pattern" compile "$digits" --arch "$arch"
    check 2 "$pattern" compile "$digits" --arch "$arch" --dump asm
    [ ! -e "$work/k.o" ] || complain "asm --arch $arch" 'no object' 'one'
    grep -q "known:.*$arch" "$work/why" && complain "asm --arch $arch" "not among the known" "$(cat "$work/why")"
  fi
done
[ "${later// /}" = gfx950 ] || [ -z "$later" ] || complain 'asm' 'at most gfx950 to be refused' "$later"
for arch in gfx1 gfx999 GFX1100 '' 'gfx1100 '; do
  check 2 "architecture '$arch'.*known: .*gfx1100" asm --arch "$arch" "$work/k.s" -o "$work/k.o"
  check 2 "architecture '$arch'.*known: .*gfx1100" compile "$digits" --arch "$arch"
  check 2 "architecture '$arch'.*exist for: .*gfx1100" disasm --arch "$arch" "$work/k.s"
done
check 2 "architecture 'gfx942'.*exist for: .*gfx1100" disasm --arch gfx942 "$work/k.s"
# The manual and the error name the same decoders, and each of them there is.
decoders=$(sed -n 's/.*decoders exist for: //p' <<<"$err")
grep -qxF "$decoders." "$source_dir/docs/man/bellwire-disasm.1" || complain "$last" "the list of the manual" "$decoders"
"$bellwire" asm --arch gfx1100 "$work/k.s" -o "$work/k.o"
for arch in ${decoders//,/}; do
  case $arch in
    gfx1100) check 0 '' disasm --arch $arch "$work/k.o" ;;
    *) check 1 "another architecture.*expected $arch, observed gfx1100" disasm --arch $arch "$work/k.o" ;;
  esac
done
[ "$(wc -w <<<"$decoders")" -ge 6 ] || complain "$last" "six decoders" "$decoders"
finish
