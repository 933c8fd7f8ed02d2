#!/usr/bin/env bash
# usage: packages_test.sh BUILD
# Makes the Debian package of the program, unpacks it and uses what it holds.
set -euo pipefail  # so that no reader of a pipe may stop before its end: grep without -q
build=$1
if ! command -v dpkg-shlibdeps >/dev/null; then
  echo "SKIPPED: no dpkg-shlibdeps here (package dpkg-dev)"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cpack --config "$build/CPackConfig.cmake" -G DEB -B "$scratch" -D CPACK_COMPONENTS_ALL=cli >"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; exit 1; }
package=$(echo "$scratch"/shardtool_*.deb)
dpkg-deb -x "$package" "$scratch/root"
"$scratch/root/usr/bin/shardtool" --version
dpkg-deb -f "$package" Depends | grep 'libc6 (>= ' >/dev/null
dpkg-deb -f "$package" Description | head -1
for file in share/doc/shardtool/copyright share/bash-completion/completions/shardtool \
  share/shardtool/schemas/mapping-v1.json share/shardtool/family/llama.json; do
  [[ -s $scratch/root/usr/$file ]] || { echo "the package has no $file"; exit 1; }
done
if command -v scdoc >/dev/null; then
  gzip -dc "$scratch/root/usr/share/man/man1/shardtool-split.1.gz" | grep 'shardtool' >/dev/null
  gzip -dc "$scratch/root/usr/share/man/man5/shardtool-mapping.5.gz" | grep 'strategy' >/dev/null
fi
