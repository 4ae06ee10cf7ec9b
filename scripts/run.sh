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
exec "$bw_root/build/release/bellwire" run "$bw_root/samples/digits/digits.onnx" --input "@0=$bw_root/samples/digits/seven.png" --top 3
