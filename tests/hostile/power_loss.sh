#!/usr/bin/env bash
# Row H10 of the bad-input catalogue: the power goes while an output is replaced. The output lies on a file system
# inside an image; what the image holds at the moment of the cut, without the pages that only memory had, is mounted
# again, and must show the complete old output or the complete new one. Needs the right to mount (77: skipped).
#   power_loss.sh SHARDTOOL ROUNDS
set -euo pipefail
shardtool=$1
rounds=$2
work=$(mktemp -d)
mounted=$work/mounted
mkdir "$mounted" "$work/source"
trap 'umount -q "$mounted" 2>/dev/null || true; rm -rf "$work"' EXIT

skip() {
  echo "SKIPPED: $1"
  exit 77
}
command -v mkfs.ext4 >/dev/null || skip "no mkfs.ext4 here"

# A checkpoint of 24 MiB: w [3072, 8192].
bytes=$((3072 * 8192))
header="{\"w\":{\"dtype\":\"U8\",\"shape\":[3072,8192],\"data_offsets\":[0,$bytes]}}"
{ printf "\\x$(printf %02x ${#header})\0\0\0\0\0\0\0%s" "$header"; head -c $bytes /dev/urandom; } \
  >"$work/source/model.safetensors"
mapping() {
  printf '{"version":1,"mesh":[{"axis":"tp","size":%d}],"rules":[{"match":"w","strategy":"%s"}]}' "$1" "$2"
}
mapping 2 rowwise >"$work/old.json"
mapping 4 columnwise >"$work/new.json"

truncate -s 160M "$work/base.img"
mkfs.ext4 -q "$work/base.img"
mount -o loop "$work/base.img" "$mounted" 2>"$work/mount.err" || skip "cannot mount: $(cat "$work/mount.err")"
"$shardtool" -q split "$work/source" -m "$work/old.json" -o "$mounted/out" >/dev/null
umount "$mounted"

# cut_after SECONDS|end: runs the replacement that long and leaves the image of that moment in cut.img.
cut_after() {
  cp --sparse=always "$work/base.img" "$work/run.img"
  mount -o loop "$work/run.img" "$mounted"
  "$shardtool" -q split "$work/source" -m "$work/new.json" -o "$mounted/out" --force >"$work/log" 2>&1 &
  local run=$!
  if [[ $1 == end ]]; then
    wait $run || { cat "$work/log"; exit 1; }
  else
    sleep "$1"
    kill -KILL $run 2>/dev/null || true
    wait $run 2>/dev/null || true
  fi
  cp --sparse=always "$work/run.img" "$work/cut.img"
  umount "$mounted"
}

# found: which complete output the cut image has after recovery, in $found.
look() {
  mount -o loop "$work/cut.img" "$mounted"
  if ! "$shardtool" -q diff "$work/source" "$mounted/out" >"$work/log" 2>&1; then
    ls -lA "$mounted" "$mounted/out"
    cat "$work/log"
    exit 1
  fi
  local parts=("$mounted"/out/model-rank-*)
  case ${#parts[@]} in
    2) found=old ;;
    4) found=new ;;
    *) ls -l "$mounted/out"; exit 1 ;;
  esac
  umount "$mounted"
}

declare -A seen=([old]=0 [new]=0)
for ((round = 0; round < rounds; ++round)); do
  cut_after "0.$(printf %03d $((RANDOM % 120)))" 2>/dev/null
  look
  seen[$found]=$((seen[$found] + 1))
done
# Once the program has ended, the new output is there to stay.
cut_after end
look
[[ $found == new ]] || { echo "the output of a finished run was lost"; exit 1; }
echo "$rounds cuts: ${seen[old]} show the old output, ${seen[new]} the new one, none anything else"
