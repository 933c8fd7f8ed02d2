#!/usr/bin/env bash
# usage: run.sh SHARDTOOL GOLDEN_MODEL
#
# Has torch, vLLM, SGLang and the streaming loaders read what the program writes, on the CPU. Installs them into
# SHARDTOOL_ENGINES_VENV (default: engines-venv in the build folder): 2.7 GB to download, 5.5 GB on disk. Prints a line
# PASS or FAIL per case, and the counts.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$1
golden_model=$2
venv=${SHARDTOOL_ENGINES_VENV:-$(dirname "$here")/../build/engines-venv}

if [[ ! -e $venv/ready ]]; then
  python3 -m venv "$venv"
  # The engines name a torch build that is not needed, so dependencies are listed one by one.
  "$venv/bin/pip" install --quiet --no-deps --requirement "$here/requirements.txt"
  touch "$venv/ready"
fi

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
run() {
  local status=0
  "$venv/bin/python" "$here/$1" "${@:2}" 2>&1 | tee -a "$lines" || status=$?
  ((status == 0)) || echo "FAIL $1 ended with status $status" | tee -a "$lines"
}
run torch_dcp.py "$program" "$golden_model"
run streamers.py "$program"
run torch_files.py "$program"
run torch_fsdp.py "$program"
run transformers_merge.py "$program"
run megatron_merge.py "$program"
run torchtitan_merge.py check "$program"
run sharded_state.py check vllm "$program"
run sharded_state.py check sglang "$program"
run deepseek_convert.py check "$program"
run meta_convert.py check "$program"
run dequantize.py "$program"
passed=$(grep -c '^PASS' "$lines" || true)
failed=$(grep -c '^FAIL' "$lines" || true)
skipped=$(grep -c '^SKIPPED' "$lines" || true)
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed > 0))
