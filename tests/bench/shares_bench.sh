#!/usr/bin/env bash
# usage: shares_bench.sh SHARDTOOL FOLDER [ROUNDS]
# Eight shares of a split on one machine against one process with threads, in interleaved rounds, from a source in the page
# cache: 2.5 GiB of BF16, 40 layers of two matrices, to tp=4. Prints the seconds of each round and the median of the ratios.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
shardtool=$1 folder=$2 rounds=${3:-5}
work=$(mktemp -d -p "$folder")
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 "$here/layered_model.py" source 40

now() { date +%s.%N; }
lone() { "$shardtool" split source -m mapping.json -o lone -q >/dev/null; }
shares() {
  local share pids=()
  for share in 0 1 2 3 4 5 6 7; do
    "$shardtool" split source -m mapping.json -o shares --share $share/8 --threads 1 -q >/dev/null &
    pids+=($!)
  done
  wait "${pids[@]}"
}

ratios=()
for ((round = 0; round <= rounds; ++round)); do
  cat source/model.safetensors >/dev/null
  sync; begin=$(now); lone; middle=$(now)
  sync; again=$(now); shares; end=$(now)
  [[ $round != 0 ]] || diff -r lone shares
  rm -rf lone shares
  [[ $round != 0 ]] || continue  # warms up
  ratios+=("$(awk -v a="$begin" -v b="$middle" -v c="$again" -v d="$end" 'BEGIN { printf "%.3f", (d - c) / (b - a) }')")
  awk -v a="$begin" -v b="$middle" -v c="$again" -v d="$end" \
    'BEGIN { printf "one process %.2f s, eight shares %.2f s\n", b - a, d - c }'
done
echo "time of eight shares, of that of one process (median): $(printf '%s\n' "${ratios[@]}" | sort -n | sed -n "$(((rounds + 1) / 2))p")"
