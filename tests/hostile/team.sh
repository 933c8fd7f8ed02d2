#!/usr/bin/env bash
# Several processes of one launch share a run: the bytes are those of one process, one of them speaks, and when one fails
# or is killed all end, with what is finished kept. Launches are played by their environment, and by mpirun where it is
# installed.
#   team.sh SHARDTOOL
set -euo pipefail
shardtool=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# shellcheck source=tests/hostile/sparse_source.sh
source "$here/sparse_source.sh"
sparse_source
# shellcheck source=tests/hostile/launch.sh
source "$here/launch.sh"

# launch SIZE FLAGS...: the split to `out` in SIZE processes.
launch() {
  play "$1" "$shardtool" split source -m mapping.json -o out --threads 1 "${@:2}"
}

# launch_and_kill RANK: in two processes, of which this one is slow, and is killed when the other has long finished its
# share. The one that is left must not publish.
launch_and_kill() {
  rm -f trace
  before=([$1]='strace -f -o trace -e inject=pwrite64:delay_enter=100000')
  { launch 2; echo "$statuses" >statuses; } 2>/dev/null &
  until [[ -s trace ]] && grep -q pwrite64 trace; do sleep 0.05; done
  sleep 1.5
  pkill -KILL -P "$(pgrep -f -x "strace .* $shardtool split source .* -o out .*")"
  wait %1 || true
  before=()
  [[ ! -e out ]] || fail "published after process $1 was killed"
}

# resume_alone: one process goes on with what is kept.
resume_alone() {
  "$shardtool" split source -m mapping.json -o out --resume >out.0
  grep -q '^resumed' out.0 || fail "begun anew"
  diff -r undisturbed out
  rm -rf out
}

"$shardtool" split source -m mapping.json -o undisturbed -q >/dev/null

launch 3
[[ $statuses == ' 0 0 0' ]] || fail "three processes:$statuses"
diff -r undisturbed out
grep -q '^done' out.0 || fail "the first process says nothing"
[[ ! -s out.1 && ! -s out.2 && ! -s err.1 && ! -s err.2 ]] || fail "the others speak"
launch 2 --resume
[[ $statuses == ' 0 0' ]] && grep -q 'complete already' out.0 || fail "resuming what is complete:$statuses"
rm -rf out

launch 2 --ranks 7
[[ $statuses == ' 2 2' && -s err.0 && ! -s err.1 ]] || fail "a rank that is not there:$statuses"
launch 2 --dry-run
[[ $statuses == ' 0 0' && ! -s out.1 ]] && grep -q 'dry run' out.0 || fail "a dry run:$statuses"
grep -q '^shared   by 2 processes, each moves 120 MiB to 120 MiB of the source' out.0 || fail "no word of the shares"
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1000 "$shardtool" split source -m mapping.json -o out --dry-run >out.0
grep -q '^shared   by 1,000 processes' out.0 || fail "a plan for a thousand processes"

# Processes that were not started alike say so, and which one differs in what.
unlike() {
  play 2 "$shardtool" split source -m mapping.json -o "$work/out" --threads 1 "$@"
}
# refused_with STATUSES TEXT...: all refuse, and the first says each of these.
refused_with() {
  [[ $statuses == "$1" && ! -e out && ! -s err.1 ]] || fail "not refused ($2):$statuses"
  for line in "${@:2}"; do grep -qF "$line" err.0 || fail "no word of: $line"; done
}
mkdir -p other_machine/source
cp source/model.safetensors other_machine/source/
cp mapping.json other_machine/

before=([1]="$(with --max-file-size=1GB)")
unlike
refused_with ' 2 2' 'started with different options' 'process 0: without --max-file-size' 'process 1: --max-file-size 1GB'
before=([0]="$(with --resume)")
unlike
refused_with ' 2 2' 'process 0: --resume' 'process 1: without --resume'
before=([1]="$(with --max-memory=32MiB,--io=buffered)")
unlike --ranks 0
[[ $statuses == ' 0 0' ]] || fail "processes may differ in their memory:$statuses"
rm -rf out
before=([1]='env -C other_machine')
unlike
refused_with ' 4 4' 'do not see the same source' 'process 0: model.safetensors 251,658,' 'process 1: model.safetensors 251,658,' ' bytes, inode '
ln -sf ../../source/model.safetensors other_machine/source/model.safetensors
sed -i 's/"w\*"/"w<i>"/' other_machine/mapping.json
unlike
refused_with ' 2 2' 'would not write the same output' 'process 1: mapping XXH3'
before=()
rm -rf other_machine

# Verbs that processes do not share answer once, in a file, too.
play 3 "$shardtool" plan undisturbed --to-mesh tp=2 -o plan.json
[[ $statuses == ' 0 0 0' && -s plan.json && ! -s out.1 && ! -s err.1 ]] || fail "a plan that is saved:$statuses"
play 2 "$shardtool" plan undisturbed --to-mesh tp=2 -o plan.json
[[ $statuses == *' 5'* ]] && grep -q 'E0401' err.0 || fail "a plan over another:$statuses"

if command -v strace >/dev/null && strace -f -o /dev/null true 2>/dev/null; then
  # Process 1 has the last three tensors; its disk fails in the middle of the last.
  before=([1]='strace -f -o trace -e inject=pwrite64:error=EIO:when=50')
  launch 2
  [[ $statuses == ' 5 5' ]] || fail "a disk that fails in one process:$statuses"
  grep -q 'process: 1 of 2' err.0 && grep -q 'go on with: ' err.0 || fail "the first does not say so"
  [[ ! -e out ]] || fail "published"
  before=()
  launch 3 --resume
  [[ $statuses == ' 0 0 0' ]] && grep -q '^resumed' out.0 || fail "resumed by more processes:$statuses"
  diff -r undisturbed out
  rm -rf out

  launch_and_kill 1
  [[ $(<statuses) == ' 6 '* ]] || fail "a process that is killed:$(<statuses)"
  grep -q 'process 1 of 2 ended without a word' err.0 || fail "the first does not say who is missing"
  grep -q 'kept: 120 MiB' err.0 || fail "the first did not keep its share"
  resume_alone

  # Process 0 speaks for both.
  launch_and_kill 0
  [[ $(<statuses) == *' 6' ]] || fail "the process that leads is killed:$(<statuses)"
  grep -q 'process 0 of 2 ended without a word' err.1 || fail "nobody says that the first is missing"
  grep -q 'go on with: ' err.1 || fail "the other does not say how to go on"
  resume_alone
else
  echo "no strace here: no process was made to fail"
fi

if command -v mpirun >/dev/null; then
  for size in 2 4; do
    mpirun --allow-run-as-root --oversubscribe -n "$size" "$shardtool" split source -m mapping.json -o out >out.0 2>err.0 ||
      fail "mpirun with $size processes"
    diff -r undisturbed out
    [[ $(grep -c '^.*done' out.0) == 1 ]] || fail "mpirun: not one answer"
    rm -rf out
  done
  launched="and under mpirun"
else
  launched="(no mpirun here)"
fi
leftovers=$(find . -maxdepth 1 -name '.?*' ! -name '.')
[[ -z $leftovers ]] || fail "left behind: $leftovers"
echo "launches of 2 to 4 processes $launched: the bytes of one"
