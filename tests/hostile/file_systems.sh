#!/usr/bin/env bash
# Rows G04 to G08, G10, G13, G17 and G22 of the bad-input catalogue: file systems that are full, read-only, out of
# inodes or mount points themselves, and system calls that fail. Needs the right to mount (77: skipped).
#   file_systems.sh SHARDTOOL SOURCE
set -euo pipefail
shardtool=$1
source=$2
work=$(mktemp -d)
trap 'umount -q "$work"/mounts/* 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/mounts"

skip() {
  echo "SKIPPED: $1"
  exit 77
}

# mounted NAME OPTIONS: a tmpfs, its path in $mounted.
mounted() {
  mounted=$work/mounts/$1
  mkdir "$mounted"
  mount -t tmpfs -o "$2" tmpfs "$mounted" 2>"$work/mount.err" || skip "cannot mount: $(cat "$work/mount.err")"
}

# refused WHAT TEXT COMMAND...: exits with 5 and says TEXT; nothing stands in $mounted afterwards.
refused() {
  local what=$1 text=$2 status=0
  shift 2
  "$@" >"$work/out" 2>"$work/err" || status=$?
  [[ $status == 5 ]] || { echo "$what: exit status $status, expected 5"; cat "$work/err"; exit 1; }
  grep -q "$text" "$work/err" || { echo "$what: no word of '$text'"; cat "$work/err"; exit 1; }
}

# empty WHAT FOLDER
empty() {
  [[ -z $(ls -A "$2") ]] || { echo "$1: left behind: $(ls -A "$2")"; exit 1; }
}

mounted full size=64k
refused "full" "64 KiB" "$shardtool" split "$source" -o "$mounted/out" --tp 2
empty "full" "$mounted"

mounted inodes size=64m,nr_inodes=3
refused "no inodes" "error\[E04" "$shardtool" split "$source" -o "$mounted/out" --tp 2
[[ ! -e $mounted/out ]] || { echo "no inodes: published"; exit 1; }
empty "no inodes" "$mounted"

mounted frozen size=64m
mount -o remount,ro "$mounted"
refused "read-only" "Read-only file system" "$shardtool" split "$source" -o "$mounted/out" --tp 2

mounted point size=64m
refused "mount point" "error\[E04" "$shardtool" split "$source" -o "$mounted" --tp 2 --force
empty "mount point" "$mounted"

if ! command -v strace >/dev/null || ! strace -f -o /dev/null true 2>/dev/null; then
  echo "file systems: all refused; no strace here for failing system calls"
  exit 0
fi
mounted calls size=64m

# injected CALL N: splits with the N-th such call made to fail; false when there was no N-th.
injected() {
  status=0
  strace -f -o "$work/trace" -e "inject=$1:when=$2" \
    "$shardtool" split "$source" -o "$mounted/out" --tp 2 >"$work/out" 2>"$work/err" || status=$?
  grep -q INJECTED "$work/trace"
}
clear_calls() {
  rm -rf "${mounted:?}"/* "$mounted"/.[!.]* 2>/dev/null || true
}

# G06, G08, G10: every write, sync, size and name.
failed=0
for call in pwrite64:error=EIO pwrite64:error=ENOSPC fsync:error=EIO rename:error=EIO renameat2:error=EIO \
  ftruncate:error=ENOSPC fallocate:error=ENOSPC mkdir:error=EACCES; do
  for ((n = 1; n <= 20; ++n)); do
    if ! injected "$call" "$n"; then clear_calls; break; fi
    failed=$((failed + 1))
    [[ $status == 5 ]] || { echo "$call $n: exit status $status"; cat "$work/err"; exit 1; }
    [[ ! -e $mounted/out ]] || { echo "$call $n: published"; exit 1; }
    grep -q "error\[E04" "$work/err" || { echo "$call $n: no E04"; cat "$work/err"; exit 1; }
    clear_calls
  done
done
((failed >= 20)) || { echo "only $failed calls were made to fail"; exit 1; }

# G13: what a file system may lack, or interrupt. The bytes are the same.
"$shardtool" -q split "$source" -o "$mounted/expected" --tp 2 >/dev/null
for call in fallocate:error=EOPNOTSUPP fallocate:error=ENOSYS pwrite64:error=EINTR preadv:error=EINTR; do
  injected "$call" 1 || { echo "$call: never called"; exit 1; }
  [[ $status == 0 ]] || { echo "$call: exit status $status"; cat "$work/err"; exit 1; }
  diff -r "$mounted/expected" "$mounted/out"
  rm -r "$mounted/out"
done
echo "file systems and $failed system calls: all refused, nothing published"
