#!/usr/bin/env bash
# usage: make.sh SHARDTOOL VERSION.tar.gz
#
# Makes a small model, and outputs of it whose manifests have every kind of record: uneven and fused tensors, padding,
# pipeline stages, chunks, casts, hashes of files. Run it once for a released version, and keep the archive here.
set -euo pipefail
program=$(realpath "$1")
archive=$(realpath "$2")
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
python3 "$here/make_model.py" model
"$program" -q split model -o plain --mesh pp=2,tp=2 --set axes.kv_heads.uneven=balanced
"$program" -q split model -o vllm --tp 3 --layout vllm
"$program" -q split model -o dcp-hf --tp 3 --layout dcp-hf
"$program" -q split model -o cast --tp 3 --dtype f32 --hash sha256
tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -- * | gzip -9n > "$archive"
