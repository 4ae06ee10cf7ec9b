#!/usr/bin/env bash
# Goal: the main job reads what the pictures say, on the mock GPU and on the host alike: gray, palette, RGBA and 16-bit ones; and
# README shows what it prints.
# usage: ocr.sh PROGRAM SOURCE_DIR BUILD_DIR
set -u
program=$1 source_dir=$2 build_dir=$3
models=${BW_MODELS:-$source_dir/build/models}
model=$models/ch_PP-OCRv4_rec_infer.onnx keys=$models/ppocr_keys_v1.txt
[ -r "$model" ] && [ -r "$keys" ] || { echo "skipped: no model in $models"; exit 77; }
export BW_CACHE=$build_dir/kernels-of-tests
failed=0
# The spaces at the start of two lines are the model's own: onnxruntime, given the pictures as PaddleOCR scales them, reads them too.
while IFS='|' read -r picture text; do
  out=$("$program" "$model" "$keys" "$source_dir/samples/ocr/$picture.png" --device mockkfd+amd@gfx1100 2>&1)
  status=$?
  read_text=$(echo "$out" | sed -n 's/^text        //p')
  if [ $status = 0 ] && [ "$read_text" = "$text" ] && echo "$out" | grep -q 'wave-instructions'; then
    echo "$picture: $read_text"
  else
    printf '%s: expected "%s", exit code 0\n  observed "%s", exit code %s\n%s\n' "$picture" "$text" "$read_text" "$status" "$out"
    failed=1
  fi
done <<'END'
line|no vendor runtime, 2026
line-gray| gray ring doorbell
line-palette|palette 16 colours
line-rgba| alpha channel line
line-16bit|sixteen bit depth
END
blank=$("$program" "$model" "$keys" "$source_dir/tests/conformance/blank.png" --device host:0 2>&1)
[ "$(grep -c '(no text found)' <<<"$blank")" = 2 ] || { echo "a blank picture: expected no text found, observed $blank"; failed=1; }
printf 'a\nb\nc\n' >"$build_dir/three.keys"
short=$("$program" "$model" "$build_dir/three.keys" "$source_dir/samples/ocr/line.png" --device host:0 2>&1)
grep -qE '^ocr: keys: number of characters, for the [0-9]+ classes of .*: expected 66[0-9]+, between blank and space, observed 3 ' <<<"$short" ||
  { echo "three characters: observed $short"; failed=1; }
"$program" "$model" "$keys" "$source_dir/samples/ocr/line.png" --device host:0 >/dev/full 2>"$build_dir/ocr.err"
status=$?
[ $status = 1 ] && grep -q 'standard output cannot be written (ENOSPC)' "$build_dir/ocr.err" ||
  { echo "ocr >/dev/full: expected exit code 1 and ENOSPC, observed $status"; failed=1; }

# README shows what this prints, and how many kernels that takes: figures that depend on the model and the compiler alone are today's.
figures() { # seconds, the path and what the host's vector unit rounds are one machine's; of kernels, how many there are
  sed -E 's|^(picture +)[^ ]*/samples/|\1samples/|; s/at most [0-9.e+-]+ between/at most N between/; s/^([a-z]+[+:][^ ]+)( +[0-9]+\.[0-9]{3})+$/\1 seconds/' |
    awk '$1 == "kernels" { print $1, $2, $3, $4 + $7; next } { print }'
}
shown=$(sed -n '/^What `scripts\/run.sh` prints:$/,/^The first time it also compiles/p' "$source_dir/README.md")
expected=$(sed -n 's/^    //p' <<<"$shown" | figures)
observed=$(env -u BW_DEV "$program" "$model" "$keys" "$source_dir/samples/ocr/line.png" 2>&1 | figures)
[ "$observed" = "$expected" ] || { printf "README's block is stale: expected\n%s\nobserved\n%s\n" "$observed" "$expected"; failed=1; }
kernels=$(awk '$1 == "kernels" { print $4 }' <<<"$observed")
grep -q "compiles $kernels kernels for each device" <<<"$shown" || { echo "README: expected that it compiles $kernels kernels, observed $(tail -n 1 <<<"$shown")"; failed=1; }
exit $failed
