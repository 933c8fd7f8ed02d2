#!/usr/bin/env bash
# usage: action.sh check | plan      (the steps of action.yml)
#
# check  writes shardtool.sarif, prints annotations, and ends with the status of the check
# plan   compares the plan with that of commit BASE, and comments the difference on PULL_REQUEST; without PULL_REQUEST it
#        prints the comment
set -euo pipefail

check() {
  local -a paths arguments
  # Words and globs are meant: an input of an action is one text.
  # shellcheck disable=SC2206
  paths=($SHARDTOOL_PATHS) arguments=(${SHARDTOOL_ARGUMENTS-})
  shardtool check "${paths[@]}" "${arguments[@]}" --format sarif --output shardtool.sarif --exit-zero
  shardtool check "${paths[@]}" "${arguments[@]}" --format github
}

# write_plan FILE: the plan of the files in the working directory.
write_plan() {
  local -a plan
  # shellcheck disable=SC2206
  plan=($SHARDTOOL_PLAN)
  shardtool plan "${plan[@]}" --exit-zero --json > "$1"
}

plan() {
  scratch=$(mktemp -d)
  trap 'git worktree remove --force "$scratch/base" 2>/dev/null || true; rm -rf "$scratch"' EXIT
  write_plan "$scratch/head.json"
  git cat-file -e "$BASE" 2>/dev/null || git fetch --quiet --depth 1 origin "$BASE"
  git worktree add --quiet --detach "$scratch/base" "$BASE"
  (cd "$scratch/base" && write_plan "$scratch/base.json")
  {
    echo '**shardtool**: the plan, against the base branch'
    echo '```'
    shardtool plan diff "$scratch/base.json" "$scratch/head.json" || (($? == 1))
    echo '```'
  } > "$scratch/comment.md"
  if [[ ${PULL_REQUEST-} ]]; then
    gh pr comment "$PULL_REQUEST" --body-file "$scratch/comment.md"
  else
    cat "$scratch/comment.md"
  fi
}

case ${1-} in
  check | plan) "$1" ;;
  *) sed -n '2,6s/^# //p' "$0" >&2; exit 2 ;;
esac
