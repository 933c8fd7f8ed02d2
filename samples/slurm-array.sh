#!/usr/bin/env bash
#SBATCH --job-name=shardtool
#SBATCH --array=0-7
#SBATCH --cpus-per-task=4
#SBATCH --requeue
# usage: sbatch slurm-array.sh split SRC -o OUT --tp 8
# Splits, merges or reshards in as many shares as the array has tasks. SRC and OUT are in folders
# that every machine sees. The task that ends last publishes OUT. Tasks that failed run again alone:
#   SHARES=8 sbatch --array=3,5 slurm-array.sh split SRC -o OUT --tp 8
# `shardtool finish OUT` names the shares that are missing. A validation is shared in the same way,
# and `shardtool finish VERDICTS` gives its verdict:
#   sbatch slurm-array.sh validate OUT -r SRC -o VERDICTS
set -euo pipefail
[[ $# -ge 2 ]] || { sed -n 's/^# usage/usage/p' "$0" >&2; exit 2; }
exec shardtool "$@" --share "auto/${SHARES:-$SLURM_ARRAY_TASK_COUNT}"
