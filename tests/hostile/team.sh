#!/usr/bin/env bash
# Processes of one launch are shares of a run: together they write the bytes of one process, the last one publishes, and
# one that fails or is killed is run again alone. Launches are played by their environment, and by mpirun where it is
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

# share I/N: the split to `out` of one share that was not launched; its answer in out.0.
share() {
  "$shardtool" split source -m mapping.json -o out --share "$1" >out.0 2>err.0 || fail "share $1 alone"
}

# published NUMBER: so many of the processes say that they published.
published() {
  [[ $(cat out.* | grep -c 'have ended: published') == "$1" ]] || fail "not $1 of the processes published"
}

"$shardtool" split source -m mapping.json -o undisturbed -q >/dev/null

launch 3
[[ $statuses == ' 0 0 0' ]] || fail "three processes:$statuses"
diff -r undisturbed out
published 1
for rank in 0 1 2; do grep -q "^share    $rank/3: " out.$rank || fail "process $rank says nothing"; done
launch 2 --resume
[[ $statuses == ' 0 0' ]] && grep -q 'complete already' out.1 || fail "resuming what is complete:$statuses"
rm -rf out

launch 2 --ranks 7
[[ $statuses == ' 2 2' && -s err.0 && -s err.1 && ! -e out ]] || fail "a rank that is not there:$statuses"
launch 2 --no-such-flag
[[ $statuses == ' 2 2' && -s err.0 && ! -s err.1 ]] || fail "a word that is not known is said once:$statuses"
launch 2 --dry-run
[[ $statuses == ' 0 0' ]] && grep -q 'dry run' out.1 || fail "a dry run:$statuses"
grep -q '^shared   in 2 shares, each moves 120 MiB to 120 MiB of the source' out.0 || fail "no word of the shares"
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1000 "$shardtool" split source -m mapping.json -o out --dry-run >out.0
grep -q '^shared   in 1,000 shares' out.0 || fail "a plan for a thousand processes"
before=([1]="$(with --max-memory=32MiB,--io=buffered)")
launch 2 --ranks 0
[[ $statuses == ' 0 0' ]] || fail "processes may differ in their memory:$statuses"
rm -rf out

# A process that sees another source, or another mapping, is refused; the others are not published without it.
refused() {
  play 2 "$shardtool" split source -m mapping.json -o "$work/out" --threads 1
  [[ $statuses == *' 4'* && ! -e out ]] && grep -qF "$1" err.* || fail "not refused ($1):$statuses"
  rm -rf .out.shardtool*
}
mkdir -p other_machine/source
cp source/model.safetensors other_machine/source/
cp mapping.json other_machine/
before=([1]='env -C other_machine')
refused 'E0312'
ln -sf ../../source/model.safetensors other_machine/source/model.safetensors
sed -i 's/"w\*"/"w<i>"/' other_machine/mapping.json
refused 'share of another run'
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
  [[ $statuses == ' 0 5' && ! -e out ]] || fail "a disk that fails in one process:$statuses"
  grep -q 'go on with: ' err.1 || fail "it does not say how to go on"
  grep -q '1 of 2 shares have not ended: 1' out.0 || fail "the other does not say who is missing"
  before=()
  "$shardtool" finish out >out.0 2>err.0 && fail "finished without a share"
  grep -q '1 of 2 shares have not ended: 1' err.0 || fail "finish does not say who is missing"
  share 1/2
  grep -q '^resumed' out.0 || fail "begun anew"
  published 1
  diff -r undisturbed out
  rm -rf out

  # A slow process is killed when the other has long ended.
  for killed in 0 1; do
    before=([$killed]='timeout -s KILL 2 strace -f -o trace -e inject=pwrite64:delay_enter=100000')
    launch 2
    [[ $statuses == *' 137'* && ! -e out ]] || fail "process $killed is killed:$statuses"
    before=()
    launch 3
    [[ $statuses == ' 0 0 0' ]] || fail "resumed by more processes:$statuses"
    grep -q '^resumed' out.* || fail "nothing was taken up"
    published 1
    diff -r undisturbed out
    rm -rf out
  done
else
  echo "no strace here: no process was made to fail"
fi

if command -v mpirun >/dev/null; then
  for size in 2 4; do
    rm -f out.* err.*
    mpirun --allow-run-as-root --oversubscribe -n "$size" "$shardtool" split source -m mapping.json -o out >out.0 2>err.0 ||
      fail "mpirun with $size processes"
    diff -r undisturbed out
    published 1
    rm -rf out
  done
  launched="and under mpirun"
else
  launched="(no mpirun here)"
fi
leftovers=$(find . -maxdepth 1 -name '.?*' ! -name '.')
[[ -z $leftovers ]] || fail "left behind: $leftovers"
echo "launches of 2 to 4 processes $launched: the bytes of one"
