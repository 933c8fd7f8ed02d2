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
"$scratch/build/split_checkpoint" "$samples/tiny-llama" "$scratch/out" tp=2
"$scratch/prefix/bin/shardtool" -q check "$scratch/out"
[[ -x $scratch/prefix/bin/shardtool ]]
"$scratch/prefix/bin/shardtool" --version
