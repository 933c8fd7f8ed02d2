#!/usr/bin/env bash
# usage: action_test.sh SHARDTOOL SAMPLES
# Runs the steps of samples/ci/action.yml in a repository whose last commit changes a mapping, and on a broken checkpoint.
set -euo pipefail
samples=$(realpath "$2")
if ! command -v git >/dev/null; then
  echo "SKIPPED: no git here"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/repository"
ln -s "$(realpath "$1")" "$scratch/bin/shardtool"
export LC_ALL=C PATH="$scratch/bin:$PATH" HOME="$scratch" GIT_CONFIG_NOSYSTEM=1
unset GIT_DIR GIT_WORK_TREE PULL_REQUEST FORCE_COLOR CLICOLOR_FORCE SHARDTOOL_COLOR
cd "$scratch/repository"

# The action installs what the quickstart does.
found=$(sed -n 's/^ *run: \(source .*\) && install_packages "\${build_packages\[@\]}".*/\1/p' "$samples/ci/action.yml")
GITHUB_ACTION_PATH=$samples/ci bash -euc "$found"' && [[ " ${build_packages[*]} " == *" libre2-dev "* ]]'

commit() {
  git add --all
  git -c user.name=test -c user.email=test@example.invalid commit --quiet --message "$1"
}
git init --quiet
cp -r "$samples/tiny-llama" model
cp "$samples/mappings/llama-gqa-tp4.json" mapping.json
commit base
BASE=$(git rev-parse HEAD)
export BASE SHARDTOOL_PATHS=model SHARDTOOL_PLAN='model --mapping mapping.json'

bash "$samples/ci/action.sh" check >"$scratch/checked" 2>&1
grep -q '0 findings' "$scratch/checked"
bash "$samples/ci/action.sh" plan >"$scratch/comment"
grep -qx '### shardtool plan diff: same' "$scratch/comment"

sed -i 's/"size": 4/"size": 2/' mapping.json
commit mapping
bash "$samples/ci/action.sh" plan >"$scratch/comment"
grep -qx '### shardtool plan diff: differs' "$scratch/comment"
grep -F "| mesh/tp/size | 4 | 2 | −50 % |" "$scratch/comment"
git worktree list >"$scratch/worktrees"
[[ $(wc -l <"$scratch/worktrees") == 1 ]]

# A model that the base branch lacks has no plan there, and an error is printed.
cp -r model added
commit added
SHARDTOOL_PLAN='added --mapping mapping.json' bash "$samples/ci/action.sh" plan >"$scratch/comment"
grep -q 'the base branch has none' "$scratch/comment"
grep -q '^error\[E0306\]' "$scratch/comment"
grep -q '^| weights ' "$scratch/comment"
echo '{"version": 1, "extends": ["preset:none"]}' >broken.json
status=0
SHARDTOOL_PLAN='model --mapping broken.json' bash "$samples/ci/action.sh" plan >"$scratch/comment" 2>"$scratch/errors" || status=$?
[[ $status == 3 && ! -s $scratch/comment ]]
grep -q '^error\[.*none' "$scratch/errors"

truncate --size=-1 model/model-00002-of-00002.safetensors
if bash "$samples/ci/action.sh" check >"$scratch/checked"; then echo "a broken checkpoint passes"; exit 1; fi
grep '^::error' "$scratch/checked"
grep -q '"ruleId"' shardtool.sarif
