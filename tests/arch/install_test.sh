#!/usr/bin/env bash
# usage: install_test.sh BUILD CONSUMER      (build folder; folder of a project that uses the library)
# The consumer is samples/cpp. Installs into a folder of its own, builds the consumer against it with find_package, and runs it.
set -euo pipefail
build=$1
consumer=$2
samples=$(dirname "$(realpath "$consumer")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/prefix" >/dev/null
cmake -S "$consumer" -B "$scratch/build" -G Ninja -DCMAKE_PREFIX_PATH="$scratch/prefix" >/dev/null
cmake --build "$scratch/build"
diff <(echo "3 3 2 2 ") <("$scratch/build/split_checkpoint")
diff - <("$scratch/build/column_parallel_linear") <<'TEXT'
device 0 has y 14 17 20 of 14 17 20 23 26
dL/db 14 17 20, dL/dx 330 830
tied logits 1 1 2 1 0 1
TEXT
diff - <("$scratch/build/own_engine") <<'TEXT'
y 4 1, dL/dW0 12
served 4 3
served 3 1
TEXT
"$scratch/build/shardings" > "$scratch/shardings"
if grep -v ' equal$' "$scratch/shardings"; then exit 1; fi
[[ $(wc -l < "$scratch/shardings") == 7 ]]
"$scratch/build/split_checkpoint" "$samples/tiny-llama" "$scratch/out" tp=2
"$scratch/prefix/bin/shardtool" -q check "$scratch/out"
[[ -x $scratch/prefix/bin/shardtool ]]
"$scratch/prefix/bin/shardtool" --version
