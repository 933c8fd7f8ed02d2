#!/bin/bash
# usage: check_file_schemas.sh PROGRAM SOURCE
# Holds the schemas of graphs, profiles and policies against the tables of verdicts, whose documents the decoders read
# in file_schemas_test.cc; and the built-in graphs and profiles, and the examples of the manual, against the schemas.
set -euo pipefail
program=$1 source=$2
here=$source/tests/cli
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/graph" "$scratch/profile" "$scratch/policy"

# names FIELD COMMAND...: the names in the list that a command prints.
names() {
  "$program" "${@:2}" --json | python3 -c 'import json, sys; print(*[one["name"] for one in json.load(sys.stdin)[sys.argv[1]]])' "$1"
}
# example PAGE: the first literal block of a page.
example() { awk '/^```$/ { blocks++; next } blocks == 1' "$source/cli/man/shardtool-$1.5.scd"; }

for name in $(names graphs graphs); do
  "$program" graphs show "$name" >"$scratch/graph/$name.json"
done
for name in $(names profiles plan profile list); do
  "$program" plan profile show "$name" >"$scratch/profile/$name.json"
done
example graph >"$scratch/graph/of the page.json"
example ops >"$scratch/policy/of the page.json"
for kind in graph profile policy; do
  python3 "$source/tests/mapping/check_schema.py" <("$program" schema $kind) "$here/verdicts/$kind.json" "$scratch/$kind"/*.json
done
