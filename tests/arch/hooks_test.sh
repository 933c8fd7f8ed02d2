#!/usr/bin/env bash
# usage: hooks_test.sh SHARDTOOL SOURCE
# Lets pre-commit run the hooks of this repository over a checkpoint and two mappings, with the program that was built.
set -euo pipefail
shardtool=$(realpath "$1") source=$(realpath "$2")
if ! command -v pre-commit >/dev/null; then
  echo "SKIPPED: no pre-commit here (package pre-commit)"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch/home PATH=$scratch/bin:$PATH GIT_CONFIG_NOSYSTEM=1
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
mkdir "$scratch/bin" "$scratch/home" "$scratch/hooks" "$scratch/work"
ln -s "$shardtool" "$scratch/bin/shardtool"
git config --global user.name test
git config --global user.email test@localhost
git config --global init.defaultBranch main

# The program is there, so that nothing is installed.
sed 's/language: python/language: system/' "$source/.pre-commit-hooks.yaml" >"$scratch/hooks/.pre-commit-hooks.yaml"
git -C "$scratch/hooks" init -q
git -C "$scratch/hooks" add -A
git -C "$scratch/hooks" commit -qm hooks

cd "$scratch/work"
git init -q
cp -r "$source/samples/tiny-llama" model
shardtool init model -o mapping.json >/dev/null
cp mapping.json other-mapping.json
cat >.pre-commit-config.yaml <<YAML
repos:
  - repo: file://$scratch/hooks
    rev: $(git -C "$scratch/hooks" rev-parse HEAD)
    hooks:
      - id: shardtool-check
      - id: shardtool-mapping
        args: [model, --mapping, mapping.json]
YAML
git add -A
pre-commit run --all-files || { echo "the hooks refuse what is right"; exit 1; }

sed -i 's/"axes"/"axess"/' mapping.json
git add -A
if pre-commit run --all-files >"$scratch/log"; then echo "a broken mapping passes"; exit 1; fi
grep 'axess' "$scratch/log"
sed -i 's/"axess"/"axes"/' mapping.json
truncate -s -1 model/model-00001-of-00002.safetensors
git add -A
if pre-commit run --all-files >"$scratch/log"; then echo "a truncated file passes"; exit 1; fi
grep 'model-00001-of-00002.safetensors' "$scratch/log"
