#!/usr/bin/env bash
# Installs what is missing, builds (Release), runs `bellwire` with the arguments; with none, the main job: reads a line of
# text from a picture with a real ONNX model on the embedded mock GPU, beside the same model on the host.
set -eu
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# shellcheck disable=SC2086
bw_install $bw_build_packages
bw_build_shown release bellwire-cli sample_ocr
if [ $# -gt 0 ]; then
  exec "$bw_root/build/release/bellwire" "$@"
fi
if bash "$bw_root/scripts/fetch-models.sh" ocr >&2; then
  exec "$bw_root/build/release/samples/ocr" "$bw_models/ch_PP-OCRv4_rec_infer.onnx" "$bw_models/ppocr_keys_v1.txt" \
    "$bw_root/samples/ocr/line.png"
fi
echo "the OCR model could not be fetched: running the repository's own small model instead" >&2
# On the host first: its answer is what the GPU's is laid beside.
digits=$bw_root/samples/digits
reference=$(mktemp -d)
trap 'rm -rf "$reference"' EXIT
"$bw_root/build/release/bellwire" run "$digits/digits.onnx" --device host:0 --input "@0=$digits/seven.png" --output "$reference" >/dev/null
"$bw_root/build/release/bellwire" run "$digits/digits.onnx" --input "@0=$digits/seven.png" --top 3 --expect "digit=$reference/digit.npy"
