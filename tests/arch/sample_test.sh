#!/usr/bin/env bash
# usage: sample_test.sh SAMPLES
# The committed sample is what its script makes, byte for byte.
set -euo pipefail
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 "$1/make_tiny_llama.py" "$scratch/tiny-llama"
diff -r "$scratch/tiny-llama" "$1/tiny-llama"
