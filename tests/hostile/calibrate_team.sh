#!/usr/bin/env bash
# Processes of one launch calibrate together: all end well, one speaks, and its profile is one that plan takes. When one is
# gone the others end in time. Launches are played by their environment, and by mpirun where it is installed.
#   calibrate_team.sh SHARDTOOL SAMPLES MPI_PLUGIN
set -euo pipefail
shardtool=$1 model=$2/tiny-llama plugin=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# shellcheck source=tests/hostile/launch.sh
source "$here/launch.sh"

calibrate=("$shardtool" plan profile calibrate --size 4MiB)
once=("${calibrate[@]}" --rounds 1)

# The answer of `ranks` processes in out.0, and the profile cluster.json; which is then used up.
is_answer() {
  grep -qE "^measured .*$1 ranks of the $2 engine" out.0 || fail "not $1 ranks of $2"
  [[ $(grep -cE "^ +$1 +all_reduce" out.0) == 5 ]] || fail "no table of $1 ranks"
  "$shardtool" plan "$model" --tp 2 --profile cluster.json >/dev/null || fail "plan does not take the profile"
  rm cluster.json
}

for size in 2 3; do
  play $size "${once[@]}" -o cluster.json
  [[ $statuses == "$(printf ' 0%.0s' $(seq $size))" ]] || fail "$size processes:$statuses"
  [[ ! -s out.1 && ! -s err.0 && ! -s err.1 ]] || fail "the others speak"
  is_answer $size tcp
done

play 2 "${once[@]}" --json
[[ $statuses == ' 0 0' && ! -s out.1 ]] || fail "a document:$statuses"

# The first process alone looks for a file in its place; the others hear of it instead of waiting for the meeting.
touch cluster.json
play 2 "${once[@]}" -o cluster.json
[[ $statuses == ' 5 5' ]] && grep -q E0401 err.0 || fail "a profile over another:$statuses"
rm cluster.json

# The first process hears at once of an error that another one has with its command line: a word that is no flag, one too
# many, a flag without use here, and a value.
for words in --no-such-flag a,b --tp=2 --size=1KiB; do
  before=([1]="$(with "$words")")
  start=$SECONDS
  play 2 "${calibrate[@]:0:4}"
  [[ $statuses == ' 2 2' && ! -s err.1 ]] && grep -q 'process: 1 of 2' err.0 || fail "process 1 is told $words:$statuses"
  ((SECONDS - start < 60)) || fail "process 1 is told $words, which is told late"
done
before=()

before[1]="timeout -s KILL 0.3"
play 2 "${calibrate[@]}"
[[ $statuses == ' 6 137' || $statuses == ' 6 124' ]] || fail "a killed process:$statuses"
grep -q 'E0502' err.0 || fail "no word of the lost process"
before=()

if command -v mpirun >/dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SHARDTOOL_MPI_PLUGIN=$plugin
  export NO_COLOR=1  # mpirun gives its processes a terminal
  mpirun --oversubscribe -n 2 "${once[@]}" -o cluster.json >out.0 2>err.0 || fail "mpirun, tcp"
  is_answer 2 tcp
  if [[ -n $plugin ]]; then
    mpirun --oversubscribe -n 2 "${once[@]}" --engine mpi -o cluster.json >out.0 2>err.0 || fail "mpirun, mpi"
    is_answer 2 mpi
  fi
else
  echo "SKIPPED: mpirun is not installed; launches were played"
fi
