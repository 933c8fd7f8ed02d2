#!/usr/bin/env bash
# Runs every fuzzer for a while and prints what it did. What a run learns is kept in BUILD/fuzz/corpus for the next
# one; findings are in BUILD/fuzz/findings. Exit status 1 when there are any.
#   run.sh BUILD [SECONDS [TARGET...]]
#   run.sh --keep BUILD        add to the repository's corpus the few inputs that reach what it does not reach yet
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# The largest allocation and the memory of a run: inputs have at most 64 KiB, whatever the numbers in them say.
limits=(-max_len=65536 -timeout=10 -malloc_limit_mb=64 -rss_limit_mb=2048)

targets_of() {
  local fuzzer
  for fuzzer in "$1"/tests/fuzz/fuzz_*; do basename "$fuzzer" | sed 's/^fuzz_//'; done
}

dictionary() {
  if [[ $1 == glob || $1 == size ]]; then echo "$here/$1.dict"; else echo "$here/json.dict"; fi
}

# confirm TARGET: forgets findings that do not show again, such as a timeout of a machine that did something else.
confirm() {
  local finding
  for finding in "$build/fuzz/findings/$1-"*; do
    [[ -e $finding ]] || continue
    if "$build/tests/fuzz/fuzz_$1" "${limits[@]}" "$finding" >/dev/null 2>&1; then rm "$finding"; fi
  done
}

found_by() {
  find "$build/fuzz/findings" -name "$1-*" | wc -l
}

# fuzz TARGET: until the time is over or something is found; its output goes to BUILD/fuzz/TARGET.log.
fuzz() {
  local learned=$build/fuzz/corpus/$1 log=$build/fuzz/$1.log end=$((SECONDS + seconds)) ended
  mkdir -p "$learned" "$build/fuzz/findings"
  : >"$log"
  while ((SECONDS < end)); do
    nice -n 19 "$build/tests/fuzz/fuzz_$1" "${limits[@]}" -max_total_time=$((end - SECONDS)) -print_final_stats=1 \
      -dict="$(dictionary "$1")" -artifact_prefix="$build/fuzz/findings/$1-" \
      "$learned" "$here/corpus/$1" >>"$log" 2>&1 && ended=0 || ended=$?
    confirm "$1"
    ((ended == 0 || $(found_by "$1") > 0)) && break
    grep -q '^stat::' "$log" || break # it does not even start
  done
}

# row TARGET: target, executions, edges covered, findings.
row() {
  local log=$build/fuzz/$1.log executions edges found
  executions=$(awk '/^stat::number_of_executed_units:/ { all += $2 } END { print all }' "$log")
  edges=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d ' ' -f 2)
  found=$(found_by "$1")
  # A fuzzer that ended before it said what it did has found something, too.
  [[ $executions ]] || ((found)) || found="ended early, see $log"
  printf '%-10s %12s %8s  %s\n' "$1" "${executions:-?}" "${edges:-?}" "$found"
  [[ $found == 0 ]]
}

keep() {
  build=$1
  local target merged
  for target in $(targets_of "$build"); do
    if [[ ! -d $build/fuzz/corpus/$target ]]; then
      printf '%-10s has not run\n' "$target"
      continue
    fi
    merged=$(mktemp -d)
    "$build/tests/fuzz/fuzz_$target" -merge=1 -max_len=4096 "$merged" "$here/corpus/$target" \
      "$build/fuzz/corpus/$target" >/dev/null 2>&1
    # Adds inputs of up to 1 KiB, those with most coverage first: at most 16 files and 16 KiB.
    local room=16384 files=16 file size
    while read -r size file; do
      ((room -= size, files -= 1, room >= 0 && files >= 0)) || break
      cp -n "$file" "$here/corpus/$target/"
    done < <(find "$merged" -type f -size -1025c -printf '%s %p\n' | sort -rn)
    rm -r "$merged"
    printf '%-10s %4d files, %6d bytes\n' "$target" "$(find "$here/corpus/$target" -type f | wc -l)" \
      "$(cat "$here/corpus/$target"/* | wc -c)"
  done
}

if [[ ${1-} == --keep ]]; then
  keep "$2"
  exit
fi
build=$1
seconds=${2:-60}
shift $(($# < 2 ? $# : 2))
read -ra targets <<<"${*:-$(targets_of "$build" | tr '\n' ' ')}"
for target in "${targets[@]}"; do
  while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n; done
  fuzz "$target" &
done
wait
failed=no
printf '%-10s %12s %8s  %s\n' target executions edges findings
for target in "${targets[@]}"; do row "$target" || failed=yes; done
[[ $failed == no ]]
