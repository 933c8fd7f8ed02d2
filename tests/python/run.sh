#!/usr/bin/env bash
# usage: run.sh [PYTEST ARGUMENT...]
#
# Builds the wheel, installs it into a fresh environment, and runs the tests of the Python module with it. Python 3.10 or
# later with its headers; SHARDTOOL_PYTHON names it (default python3). pip fetches what pyproject.toml names, pytest, mypy,
# numpy, ml_dtypes, safetensors, and moto, a server that speaks S3. The tests of torch are skipped where the environment
# lacks it; SHARDTOOL_PYTHON_PATH adds a site-packages folder that has it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${SHARDTOOL_PYTHON:-python3}

skip() {
  echo "SKIPPED: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}
"$python" -c 'import venv, ensurepip' 2>/dev/null || skip "$python has no venv (package python3-venv)"
"$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
  skip "$python has no headers (package python3-dev)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "$python is older than 3.10"

tag=$("$python" -c 'import sys; print(f"py{sys.version_info[0]}{sys.version_info[1]}")')
builder=$root/build/wheel/$tag-builder
venv=$root/build/wheel/$tag-venv
[[ -x $builder/bin/pip ]] || "$python" -m venv "$builder"
"$builder/bin/pip" install --quiet 'scikit-build-core>=0.11' 'nanobind>=2.9' ||
  skip "pip cannot install scikit-build-core and nanobind"
rm -rf "$root/build/wheel/$tag-dist" "$venv"
launcher=()
command -v ccache >/dev/null && launcher=(-C cmake.define.CMAKE_CXX_COMPILER_LAUNCHER=ccache)
"$builder/bin/pip" wheel "$root" --quiet --no-deps --no-build-isolation --wheel-dir "$root/build/wheel/$tag-dist" \
  -C build-dir="$root/build/wheel/$tag" "${launcher[@]}"
"$python" -m venv "$venv"
mapfile -t moto < <(grep -E '^(moto|boto3)' "$root/tests/stores/requirements.txt")
wheel=$(echo "$root/build/wheel/$tag-dist"/shardtool-*.whl)
"$venv/bin/pip" install --quiet "$wheel[mpi]" pytest mypy numpy ml_dtypes safetensors "${moto[@]}"
if [[ ${SHARDTOOL_PYTHON_PATH-} ]]; then
  echo "$SHARDTOOL_PYTHON_PATH" > "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/more.pth"
fi
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
cd "$here"
status=0
"$venv/bin/python" -m pytest -q -rs -p no:cacheprovider "$@" . | tee "$lines" || status=$?

# count WORD: the number before it in pytest's last line.
count() {
  tail -n 1 "$lines" | grep -oE "[0-9]+ $1" | cut -d ' ' -f 1 || echo 0
}
echo "$(count passed) passed, $(($(count failed) + $(count error))) failed, $(count skipped) skipped"
exit $status
