#!/usr/bin/env bash
# usage: manual_test.sh SHARDTOOL SOURCE
# The mapping that shardtool-mapping(5) shows cuts the sample checkpoint.
set -euo pipefail
shardtool=$1
source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

awk '/^```$/ { inside = !inside; next } inside' "$source/cli/man/shardtool-mapping.5.scd" \
  >"$scratch/mapping.json"
"$shardtool" split "$source/samples/tiny-llama" --mapping "$scratch/mapping.json" -o "$scratch/out"
"$shardtool" merge "$scratch/out" -o "$scratch/merged"
"$shardtool" diff "$source/samples/tiny-llama" "$scratch/merged"
