#!/usr/bin/env bash
# usage: ray_sample.sh SHARDTOOL SAMPLES
# The sample for Ray, with a module in its place that runs each task at once.
set -euo pipefail
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 77; }
shardtool=$1 samples=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
cat >ray.py <<'END'
def init(**options):
    pass


def get(results):
    return results


def remote(**options):
    def task(function):
        function.remote = function
        return function
    return task
END
"$shardtool" -q split "$samples/tiny-llama" -o lone --tp 4
PATH="$(dirname "$shardtool"):$PATH" PYTHONPATH=. python3 "$samples/ray_split.py" 3 split "$samples/tiny-llama" -o out --tp 4
diff -r lone out
