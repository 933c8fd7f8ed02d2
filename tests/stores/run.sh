#!/usr/bin/env bash
# usage: run.sh SHARDTOOL [KILLS]
#
# Has the program read and write object stores: moto, and OpenStack Swift's s3api, which checks signatures and digests.
# Installs both into SHARDTOOL_STORES_VENV (default: stores-venv in the build folder). Prints a line PASS or FAIL per case,
# and the counts. With KILLS, kills so many runs on each store.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=${SHARDTOOL_STORES_VENV:-$here/../../build/stores-venv}

if [[ ! -e $venv/ready ]]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --requirement "$here/requirements.txt"
  touch "$venv/ready"
fi
exec "$venv/bin/python" "$here/cases.py" "$@"
