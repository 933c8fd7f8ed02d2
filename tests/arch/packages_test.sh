#!/usr/bin/env bash
# usage: packages_test.sh BUILD
# Makes the Debian packages of the program and of the plugin for MPI, unpacks them and uses what they hold. lintian looks
# at them where it is installed.
set -euo pipefail
build=$1
if ! command -v dpkg-shlibdeps >/dev/null; then
  echo "SKIPPED: no dpkg-shlibdeps here (package dpkg-dev)"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
installed=$scratch/installed/usr
components=cli
[[ ! -f $build/cli/libshardtool_mpi.so ]] || components='cli;mpi'

cpack --config "$build/CPackConfig.cmake" -G DEB -B "$scratch" -D "CPACK_COMPONENTS_ALL=$components" >"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; exit 1; }
for package in "$scratch"/*.deb; do
  dpkg-deb -x "$package" "$scratch/installed"
  (cd "$scratch" && sha256sum --check "$package.sha256")
  # Packages without scripts leave no trace when they are removed.
  dpkg-deb --ctrl-tarfile "$package" | tar -t >"$scratch/control-files"
  if grep -E '(pre|post)(inst|rm)' "$scratch/control-files"; then exit 1; fi
done
"$installed/bin/shardtool" --version
# No program writes to a pipe whose reader stops at its first match: it would end with SIGPIPE.
dpkg-deb -f "$scratch"/shardtool_*.deb >"$scratch/control"
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
if [[ $components == *mpi ]]; then
  "$installed/bin/shardtool" doctor --json >"$scratch/doctor" || true
  grep -q "through $installed/" "$scratch/doctor" || { cat "$scratch/doctor"; exit 1; }
fi
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on warning "$scratch"/*.deb
else
  echo "lintian is not installed, and was not asked"
fi
