#!/usr/bin/env bash
# On a file system that shares extents, a split by rows copies no rows: the output shares the source's space, and its
# data is the same. Needs the right to mount and mkfs.xfs (77: skipped).
#   shared_extents.sh SHARDTOOL
set -euo pipefail
shardtool=$1
skip() {
  echo "SKIPPED: $1"
  exit 77
}
command -v mkfs.xfs >/dev/null || skip "no mkfs.xfs here"
work=$(mktemp -d)
trap 'umount -q "$work/xfs" 2>/dev/null || true; rm -rf "$work"' EXIT
truncate -s 400M "$work/image"
mkfs.xfs -q -m reflink=1 "$work/image" 2>"$work/err" || skip "mkfs.xfs: $(head -n 1 "$work/err")"
mkdir "$work/xfs" "$work/plain"
mount -o loop "$work/image" "$work/xfs" 2>"$work/err" || skip "cannot mount: $(head -n 1 "$work/err")"

# Four tensors of 8 MiB behind a header of an odd multiple of 8 bytes.
bytes=$((8 << 20)) header='{'
for i in 0 1 2 3; do
  header+="\"w$i\":{\"dtype\":\"U8\",\"shape\":[2048,4096],\"data_offsets\":[$((i * bytes)),$(((i + 1) * bytes))]},"
done
header=${header%,}\}
while (((${#header} + 8) % 8 != 0)); do header+=' '; done
printf -v length '\\x%02x\\x%02x\\0\\0\\0\\0\\0\\0' $((${#header} % 256)) $((${#header} / 256))
mkdir "$work/xfs/source"
{
  # shellcheck disable=SC2059
  printf "$length%s" "$header"
  head -c $((4 * bytes)) /dev/urandom
} >"$work/xfs/source/model.safetensors"
cp -r "$work/xfs/source" "$work/plain/source"
rule() { echo "{\"version\": 1, \"mesh\": [{\"axis\": \"tp\", \"size\": 4}], \"rules\": [{\"match\": \"w*\", \"strategy\": \"$1\"}]}"; }
rule rowwise >"$work/rows.json"
rule columnwise >"$work/columns.json"
sync -f "$work/xfs"

# shared MAPPING: splits on both file systems, compares, and prints the bytes that were shared.
shared() {
  local on
  rm -rf "$work"/xfs/out "$work"/plain/out
  for on in xfs plain; do
    "$shardtool" split "$work/$on/source" -m "$work/$1.json" -o "$work/$on/out" --json >"$work/$on.json"
  done
  "$shardtool" diff "$work/xfs/out" "$work/plain/out" >/dev/null || { echo "$1: other data"; exit 1; }
  "$shardtool" check --read-data "$work/xfs/out" -q || { echo "$1: damaged"; exit 1; }
  sed -n 's/.*"shared_bytes": \([0-9]*\).*/\1/p' "$work/xfs.json"
}

rows=$(shared rows)
((rows == 4 * bytes)) || { echo "by rows, $rows of $((4 * bytes)) bytes were shared"; exit 1; }
columns=$(shared columns)
((columns == 0)) || { echo "by columns, $columns bytes were shared"; exit 1; }
"$shardtool" split "$work/xfs/source" -m "$work/rows.json" -o "$work/xfs/parts" -q >/dev/null
merged=$("$shardtool" merge "$work/xfs/parts" -o "$work/xfs/merged" --json | sed -n 's/.*"shared_bytes": \([0-9]*\).*/\1/p')
((merged == 4 * bytes)) || { echo "merging shared $merged bytes"; exit 1; }
"$shardtool" diff "$work/xfs/source" "$work/xfs/merged" >/dev/null || { echo "merged to other data"; exit 1; }
echo "by rows and back all $rows bytes are shared, by columns none"
