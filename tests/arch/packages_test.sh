#!/usr/bin/env bash
# usage: packages_test.sh BUILD
# Makes the Debian package of the program, unpacks it and uses what it holds.
set -euo pipefail
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
installed=$scratch/installed/usr
dpkg-deb -x "$package" "$scratch/installed"
"$installed/bin/shardtool" --version
# No program writes to a pipe whose reader stops at its first match: it would end with SIGPIPE.
dpkg-deb -f "$package" >"$scratch/control"
grep -q '^Depends: .*libc6 (>= ' "$scratch/control"
grep '^Description: ' "$scratch/control"
for file in share/doc/shardtool/copyright share/bash-completion/completions/shardtool \
  share/shardtool/schemas/mapping-v1.json share/shardtool/family/llama.json; do
  [[ -s $installed/$file ]] || { echo "the package has no $file"; exit 1; }
done
if command -v scdoc >/dev/null; then
  gunzip "$installed"/share/man/man*/*.gz
  grep -q 'shardtool' "$installed/share/man/man1/shardtool-split.1"
  grep -q 'strategy' "$installed/share/man/man5/shardtool-mapping.5"
fi
