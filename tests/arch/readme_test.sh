#!/usr/bin/env bash
# usage: readme_test.sh SHARDTOOL SOURCE
# Runs the commands that the README shows, in their order, and compares what they print with what it says. Times,
# speeds and memory may differ. `pip install .` is left to the tests of the Python package.
set -euo pipefail
shardtool=$(realpath "$1")
readme=$2/README.md
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/run"
ln -s "$shardtool" "$scratch/bin/shardtool"
ln -s "$(realpath "$2")/samples" "$scratch/run/samples"
unset FORCE_COLOR CLICOLOR_FORCE SHARDTOOL_COLOR SHARDTOOL_PROGRESS SHARDTOOL_MAX_MEMORY SHARDTOOL_THREADS
export LC_ALL=C PATH="$scratch/bin:$PATH"

# Indented blocks outside fences: lines "$ command", each followed by what it prints.
awk '/^```/ { fenced = !fenced } !fenced && sub(/^    /, "") && !/^\$ pip /' "$readme" >"$scratch/shown"
cd "$scratch/run"
while IFS= read -r line; do
  [[ $line == '$ '* ]] || continue
  echo "$line"
  bash -c "${line#'$ '}" 2>&1
done <"$scratch/shown" >"$scratch/printed"

without_measures() {
  sed -E 's/[0-9.]+ s\b/T s/g; s/[0-9.]+ [KMG]iB\/s/SPEED/g; s/peak memory [0-9.]+ [KMG]iB/peak memory M/' "$1"
}
commands=$(grep -c '^\$ shardtool' "$scratch/shown")
((commands >= 6)) || { echo "the README shows $commands commands"; exit 1; }
diff <(without_measures "$scratch/shown") <(without_measures "$scratch/printed")
