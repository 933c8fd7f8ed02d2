#!/usr/bin/env bash
# usage: needs_test.sh SHARDTOOL [PLUGIN]
# The program starts where neither MPI nor NCCL nor CUDA is; the plugin alone needs MPI.
set -euo pipefail
command -v readelf >/dev/null || { echo "SKIPPED: no readelf"; exit 77; }
needs() {
  readelf --dynamic "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}
needed=$(needs "$1")
if grep -Ei 'mpi|nccl|cuda' <<<"$needed"; then
  echo "the program needs a library that is opened at run time"
  exit 1
fi
grep -q '^libc\.so' <<<"$needed"
if [[ -n ${2:-} ]]; then
  of_plugin=$(needs "$2")
  grep -q '^libmpi' <<<"$of_plugin"
fi
