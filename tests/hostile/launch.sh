# shellcheck shell=bash
# Sourced by the scripts that play a launch: several processes that believe a launcher started them.

fail() {
  echo "$*"
  cat out.* err.* 2>/dev/null
  exit 1
}

# play SIZE COMMAND...: the command in SIZE processes; their answers in out.N and err.N, their exit statuses in $statuses. A
# command in ${before[N]} runs process N.
# $(with FLAG[,FLAG...]) gives that process more flags.
declare -A before=()
cat >with.sh <<'END'
exec "${@:2}" ${1//,/ }
END
with() { echo "bash $PWD/with.sh $1"; }
play() {
  local size=$1 rank pid status pids=()
  shift
  rm -f out.* err.*
  for ((rank = 0; rank < size; ++rank)); do
    # shellcheck disable=SC2086
    OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=$size PMIX_NAMESPACE=$$ ${before[$rank]:-} \
      "$@" >out.$rank 2>err.$rank &
    pids+=($!)
  done
  statuses=
  for pid in "${pids[@]}"; do
    status=0
    wait "$pid" || status=$?
    statuses+=" $status"
  done
}
