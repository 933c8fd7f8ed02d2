#!/usr/bin/env bash
# usage: action.sh check | plan      (the steps of action.yml)
#
# check  writes shardtool.sarif, prints annotations, and ends with the status of the check
# plan   compares the plan with that of commit BASE, and comments the difference on PULL_REQUEST, or the plan alone where
#        BASE has none (a new model or mapping); without PULL_REQUEST it prints the comment
set -euo pipefail

check() {
  local -a paths arguments
  # Words and globs are meant: an input of an action is one text.
  # shellcheck disable=SC2206
  paths=($SHARDTOOL_PATHS) arguments=(${SHARDTOOL_ARGUMENTS-})
  shardtool check "${paths[@]}" "${arguments[@]}" --format sarif --output shardtool.sarif --exit-zero
  shardtool check "${paths[@]}" "${arguments[@]}" --format github
}

# planned ARGUMENT...: the plan of the files in the working directory.
planned() {
  local -a plan
  # shellcheck disable=SC2206
  plan=($SHARDTOOL_PLAN)
  shardtool plan "${plan[@]}" --exit-zero "$@"
}

# write_plan FILE: the plan as a document. With --json an error is a document, too, so that it is printed by a second run.
write_plan() {
  local status=0
  planned --json > "$1" || status=$?
  ((status == 0)) || planned > /dev/null || true
  return "$status"
}

# compared: the comment. A base without a plan is no reason to fail: the change may add the model, or mend it.
compared() {
  if (cd "$scratch/base" && write_plan "$scratch/base.json") 2> "$scratch/why"; then
    shardtool plan diff "$scratch/base.json" "$scratch/head.json" --format md || (($? == 1))
  else
    echo '**shardtool**: a new plan; the base branch has none:'
    echo '```'
    cat "$scratch/why"
    echo '```'
    planned --format md
  fi
}

plan() {
  scratch=$(mktemp -d)
  trap 'git worktree remove --force "$scratch/base" 2>/dev/null || true; rm -rf "$scratch"' EXIT
  write_plan "$scratch/head.json"
  git cat-file -e "$BASE" 2>/dev/null || git fetch --quiet --depth 1 origin "$BASE"
  git worktree add --quiet --detach "$scratch/base" "$BASE"
  compared > "$scratch/comment.md"
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
