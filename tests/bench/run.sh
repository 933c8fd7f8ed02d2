#!/usr/bin/env bash
# usage: bash tests/bench/run.sh [BUILD FOLDER [SCRATCH FOLDER]]
# Runs every benchmark that is built (default: in build/release) and prints its table. Whole commands
# are timed in the scratch folder (default: a new one in $TMPDIR), which needs 15 GB. README.md beside this
# file says what the tables showed, and against what.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${1:-$root/build/release}
scratch=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/shardtool-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

printf 'machine  %s, %s cores\n' "$(uname -srm)" "$(nproc)"
printf 'date     %s\n' "$(date -u +%Y-%m-%d)"
printf 'commit   %s\n' "$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)"

# A benchmark that is not built is said to be missing, not passed over.
run() {
  local name=$1
  shift
  printf '\n%s\n' "$name"
  if [[ ! -x $build/tests/bench/$name ]]; then
    echo "not built: configure with -DSHARDTOOL_BENCHMARKS=ON and libbenchmark-dev"
    return
  fi
  "$build/tests/bench/$name" "$@"
}

run kernels_bench
run join_bench
run header_bench "$build/cli/shardtool" "$scratch/headers"
run plan_bench "$build/cli/shardtool" "$scratch/plan"
run reshard_time_bench "$build/cli/shardtool" "$scratch/times"
run split_bench "$build/cli/shardtool" "$scratch/split"
run limits_bench "$build/cli/shardtool" "$scratch/limits"
run check_bench "$build/cli/shardtool" "$scratch/check"
run validate_bench "$build/cli/shardtool" "$scratch/validate"
run uring_bench "$scratch/uring"

printf '\nshares_bench\n'
bash "$root/tests/bench/shares_bench.sh" "$build/cli/shardtool" "$scratch"

# The environment with the wheel that `tests/run.sh --python` has made.
printf '\npython_reading\n'
python=
for candidate in "$root"/build/wheel/*-venv/bin/python; do
  [[ ! -x $candidate ]] || python=$candidate
done
if [[ $python ]]; then
  "$python" "$root/tests/bench/python_reading.py" "$scratch"
else
  echo "not built: run bash tests/run.sh --python"
fi

printf '\ns3_bench\n'
bash "$root/tests/bench/s3_bench.sh" "$build/cli/shardtool" "$scratch"

printf '\ndcp_to_hf.py\n'
"${PYTHON:-python3}" "$root/tests/bench/dcp_to_hf.py" "$build/cli/shardtool" "$scratch"

printf '\nbench io, 4 GiB\n'
"$build/cli/shardtool" bench io "$scratch" --size 4GiB --progress never
