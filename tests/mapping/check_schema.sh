#!/usr/bin/env bash
# usage: check_schema.sh PROGRAM SCHEMA VERDICTS DOCUMENT...
# Checks the documents, and every preset that the program shows, against the schema (check_schema.py).
set -euo pipefail
program=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
names=$("$program" presets --json | python3 -c 'import json, sys; print(*[p["name"] for p in json.load(sys.stdin)["presets"]])')
for name in $names; do
  "$program" presets show "$name" >"$scratch/$name.json"
done
python3 "$(dirname "${BASH_SOURCE[0]}")/check_schema.py" "$@" "$scratch"/*.json
