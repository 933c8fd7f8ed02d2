#!/usr/bin/env bash
# usage: bash tests/bench/run.sh [BUILD FOLDER]     (default: build/release)
# Runs every benchmark that is built and prints its table; numbers belong with machine, date, commit.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${1:-$root/build/release}

printf 'machine  %s, %s cores\n' "$(uname -srm)" "$(nproc)"
printf 'date     %s\n' "$(date -u +%Y-%m-%d)"
printf 'commit   %s\n' "$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)"

mapfile -t benchmarks < <(find "$build/tests/bench" -maxdepth 1 -type f -executable 2>/dev/null | sort)
if ((${#benchmarks[@]} == 0)); then
  echo "error: no benchmarks in $build/tests/bench" >&2
  echo "help: configure with -DSHARDTOOL_BENCHMARKS=ON and build, or run tests/run.sh --bench" >&2
  exit 6
fi
scratch=$(mktemp -d "${SHARDTOOL_BENCH_FOLDER:-/var/tmp}/shardtool-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
for benchmark in "${benchmarks[@]}"; do
  name=$(basename "$benchmark")
  printf '\n%s\n' "$name"
  case $name in
    split_bench | header_bench) "$benchmark" "$build/cli/shardtool" "$scratch/data" ;;
    *) "$benchmark" ;;
  esac
done
