#!/usr/bin/env bash
# usage: install_test.sh BUILD CONSUMER      (build folder; folder of a project that uses the library)
# Installs into a folder of its own, builds the consumer against it with find_package, and runs it.
set -euo pipefail
build=$1
consumer=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/prefix" >/dev/null
cmake -S "$consumer" -B "$scratch/build" -G Ninja -DCMAKE_PREFIX_PATH="$scratch/prefix" >/dev/null
cmake --build "$scratch/build"
diff <(printf "3 3 2 2 ") <("$scratch/build/consumer")
[[ -x $scratch/prefix/bin/shardtool ]]
"$scratch/prefix/bin/shardtool" --version
