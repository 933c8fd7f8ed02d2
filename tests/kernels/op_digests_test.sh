#!/usr/bin/env bash
# usage: op_digests_test.sh HOST CUDA      (two programs of one source; the second compiled by nvcc)
# nvcc and the C++ compiler must compile the op bodies for the host to the same results.
set -euo pipefail
host=$("$1")
cuda=$("$2")
lines=$(wc -l <<<"$host")
((lines >= 60)) || { echo "only $lines digests"; exit 1; }
diff <(echo "$host") <(echo "$cuda") || { echo "the compilers disagree"; exit 1; }
(($(awk '{print $NF}' <<<"$host" | sort -u | wc -l) >= 55)) || { echo "digests repeat"; exit 1; }
echo "$lines digests agree"
