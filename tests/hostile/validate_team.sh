#!/usr/bin/env bash
# Processes of one launch validate shards together: every number of them, over TCP and over MPI, finds the same digest, one
# speaks. What fails in one, before or after it meets the others, is told as its error, with its exit status; when one is
# killed, all end in time with exit 6. Launches are played by their environment, and by mpirun where it is installed.
#   validate_team.sh SHARDTOOL SAMPLES MPI_PLUGIN
set -euo pipefail
shardtool=$1 model=$2/tiny-llama plugin=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# shellcheck source=tests/hostile/launch.sh
source "$here/launch.sh"

# launch SIZE FLAGS...: validates in SIZE processes.
launch() {
  play "$1" "$shardtool" validate parts -r "$model" "${@:2}"
}

"$shardtool" -q split "$model" -o parts --tp 4 >/dev/null
digest=$("$shardtool" validate parts -r "$model" --quick | grep '^digest') || fail "one process finds a fault"

for size in 2 3 4 5; do
  launch $size --quick
  [[ $statuses == "$(printf ' 0%.0s' $(seq $size))" ]] || fail "$size processes:$statuses"
  grep -qx "$digest" out.0 || fail "$size processes have another digest"
  [[ ! -s out.1 && ! -s err.1 ]] || fail "the others speak"
done

# At an address processes need a secret, and strangers who come first and say nothing delay nobody.
port=$((20000 + $$ % 10000))
at_address=(--quick --meeting "tcp://127.0.0.1:$port")
launch 2 "${at_address[@]}"
[[ $statuses == ' 2 2' ]] && grep -q 'export SHARDTOOL_SECRET=' err.0 && grep -q 'not set in process 1' err.1 ||
  fail "a meeting without a secret:$statuses"
cat >strangers.sh <<'END'
for ((i = 0; i < 100; ++i)); do
  until exec {open}<>"/dev/tcp/127.0.0.1/$PORT"; do sleep 0.05; done 2>/dev/null
done
exec "$@"
END
before[1]="env PORT=$port bash strangers.sh"
SHARDTOOL_SECRET=0123456789abcdef launch 2 "${at_address[@]}"
[[ $statuses == ' 0 0' ]] && grep -qx "$digest" out.0 || fail "a meeting among strangers:$statuses"
before[1]=$(with --seed=2)
launch 2 --quick
[[ $statuses == ' 2 2' ]] && grep -q 'process 1: --seed 2' err.0 || fail "two seeds in one launch:$statuses"
before=()

# All processes report an error that only one of them can see.
cp parts/model-rank-3-part-0.safetensors kept
size=$(stat -c %s kept)
printf '\125' | dd of=parts/model-rank-3-part-0.safetensors bs=1 seek=$((size - 3001)) conv=notrunc status=none
launch 2 --quick
[[ $statuses == ' 1 0' ]] && grep -q '^fault .* rank' out.0 || fail "a fault on the last device:$statuses"
grep -q 'rank 3' out.0 || fail "the device is not named"
cp kept parts/model-rank-3-part-0.safetensors

# An infinity is a fault for two processes and for a share, as for one.
printf '\200\177' | dd of=parts/model-rank-3-part-0.safetensors bs=1 seek=$((size - 20000)) conv=notrunc status=none
launch 2
[[ $statuses == ' 1 0' ]] && grep -q '^fault .* rank' out.0 || fail "an infinity in two processes:$statuses"
status=0
"$shardtool" validate parts -r "$model" --share 0/1 -o verdicts >out.0 2>err.0 || status=$?
((status == 1)) && grep -q '^fault .* rank' out.0 || fail "an infinity in a share: $status"
cp kept parts/model-rank-3-part-0.safetensors

# tells PROCESS STATUS TEXT COMMAND...: two processes, of which one meets an error that the other does not; the first one
# tells it as the error of that process, long before it would give up a process that does not come.
tells() {
  local start=$SECONDS
  play 2 "$shardtool" "${@:4}" --meeting "$work"
  [[ $statuses == " $2 "* && $statuses != *' 6' ]] && grep -q "$3" err.0 && grep -q "process: $1 of 2" err.0 ||
    fail "process $1 meets $3:$statuses"
  ((SECONDS - start < 60)) || fail "process $1 meets $3, which is told late"
}
validate=(validate parts -r "$model" --quick)
mkdir other
cp -r parts other/

# Errors before the processes meet: words that are no command line, an option, a file of options, a file to write, the model
# of a demo.
for word in --no-such-flag --seed --engine=pigeons --tokens= --quick=yes; do
  before=([1]="$(with "$word")")
  tells 1 2 "error.*${word%%=*}" "${validate[@]}"
done
before=([0]="$(with --no-such-flag)")
tells 0 2 "no flag '--no-such-flag'" "${validate[@]}"
before=()
play 3 "$shardtool" "${validate[@]}" --no-such-flag
[[ $statuses == ' 2 2 2' && -s err.0 && ! -s err.1 && ! -s err.2 ]] || fail "a flag that no process knows:$statuses"
# A command that is misspelt, and processes that are asked for a text.
cat >misspelt.sh <<'END'
exec "$1" valdate "${@:3}"
END
for process in 0 1; do
  before=([$process]="bash $work/misspelt.sh")
  tells $process 2 "no command 'valdate'" "${validate[@]}"
done
for word in --help -h --version; do
  before=([1]="$(with "$word")")
  tells 1 2 'does not validate' "${validate[@]}"
  before=([0]="$(with "$word")")
  play 2 "$shardtool" "${validate[@]}"
  [[ $statuses == ' 0 2' && -s out.0 && ! -s err.0 ]] && grep -q 'does not validate' err.1 ||
    fail "the first process is asked for $word, and the other says nothing:$statuses"
  before=()
  start=$SECONDS
  play 3 "$shardtool" "${validate[@]}" "$word"
  [[ $statuses == ' 0 0 0' && -s out.0 && ! -s err.0 && ! -s out.1 ]] || fail "all are asked for $word:$statuses"
  ((SECONDS - start < 60)) || fail "all are asked for $word, and end late"
done
before=([1]="$(with --tokens=99999)")
tells 1 2 "tokens '99999' is not" "${validate[@]}"
before=([1]="env -C other")
"$shardtool" graphs show llama >graph.json
tells 1 4 graph.json "${validate[@]}" --graph graph.json
header='{"layer_0/weights":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]}'
header+=',"layer_1/weights":{"dtype":"F32","shape":[4,4],"data_offsets":[64,128]}}'
{
  printf '%b' "\\x$(printf %02x ${#header})"
  head -c 7 /dev/zero
  printf %s "$header"
  head -c 128 /dev/zero
} >layers.safetensors
tells 1 4 layers.safetensors validate layers.safetensors --demo mlp
before=()
touch page.html
tells 0 5 E0401 "${validate[@]}" --html page.html

# And errors after it, while they open their files.
before=([1]="env -C other")
rm other/parts/model-rank-2-part-0.safetensors
tells 1 4 'missing: model-rank-2' "${validate[@]}"
before=()

# An error in the middle of a run, of which its process tells the others: a file that cannot be read, a signal.
if command -v strace >/dev/null && strace -f -o /dev/null true 2>/dev/null; then
  for call in 10 40; do
    before=([1]="strace -f -o trace -e inject=preadv:error=EIO:when=$call")
    launch 2
    [[ $statuses == ' 4 4' ]] && grep -q E0301 err.0 && grep -q 'process: 1 of 2' err.0 || fail "a read that fails:$statuses"
  done
else
  echo "no strace here: no process was made to fail"
fi
# A signal that comes while the processes still meet, on a slow machine, ends the meeting; a later one ends the run.
for seconds in 1.5 3 6 12; do
  before=([1]="timeout -s TERM $seconds")
  launch 2 --tokens 4096
  [[ $statuses != ' 130 '* ]] || break
done
[[ $statuses == ' 130 '* ]] && grep -q 'process: 1 of 2' err.0 || fail "a process that a signal ends:$statuses"

# A process that is killed in the middle of a run of many seconds.
before[1]="timeout -s KILL 1.5"
launch 2 --tokens 4096
[[ $statuses == ' 6 137' || $statuses == ' 6 124' ]] || fail "a killed process:$statuses"
grep -q 'E0502' err.0 || fail "no word of the lost process"
before=()

if command -v mpirun >/dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SHARDTOOL_MPI_PLUGIN=$plugin
  for size in 2 4; do
    mpirun --oversubscribe -n $size "$shardtool" validate parts -r "$model" --quick >out.0 2>err.0 || fail "mpirun, tcp"
    grep -q "${digest##* }" out.0 || fail "mpirun -n $size over TCP has another digest"
    if [[ -n $plugin ]]; then
      mpirun --oversubscribe -n $size "$shardtool" validate parts -r "$model" --quick --engine mpi >out.0 2>err.0 ||
        fail "mpirun -n $size, mpi"
      grep -q "${digest##* }" out.0 || fail "MPI with $size processes has another digest"
    fi
  done
else
  echo "SKIPPED: mpirun is not installed; launches were played"
fi
