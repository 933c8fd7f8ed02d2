#!/usr/bin/env bash
# Rows G04, G05, G08, G17 and G22 of the bad-input catalogue: file systems that are full, read-only, out of inodes or
# mount points themselves, and system calls that fail. Needs the right to mount (77: skipped).
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
injected=0
for call in pwrite64:error=EIO pwritev:error=EIO fsync:error=EIO renameat2:error=EIO ftruncate:error=ENOSPC; do
  for when in 1 2 3; do
    status=0
    strace -f -o "$work/trace" -e "inject=$call:when=$when" \
      "$shardtool" split "$source" -o "$mounted/out" --tp 2 >"$work/out" 2>"$work/err" || status=$?
    if grep -q INJECTED "$work/trace"; then
      injected=$((injected + 1))
      [[ $status == 5 ]] || { echo "$call $when: exit status $status"; cat "$work/err"; exit 1; }
      [[ ! -e $mounted/out ]] || { echo "$call $when: published"; exit 1; }
    fi
    rm -rf "${mounted:?}"/* "$mounted"/.[!.]* 2>/dev/null || true
  done
done
((injected >= 5)) || { echo "only $injected calls were made to fail"; exit 1; }
echo "file systems and $injected system calls: all refused, nothing published"
