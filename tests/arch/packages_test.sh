#!/usr/bin/env bash
# usage: packages_test.sh BUILD COMPONENT...
# Makes the Debian packages of these parts (cli, mpi, dev; mpi only where the build has its plugin), unpacks them and uses
# what they hold. lintian looks at them where it is installed.
set -euo pipefail
build=$1
shift
if ! command -v dpkg-shlibdeps >/dev/null; then
  echo "SKIPPED: no dpkg-shlibdeps here (package dpkg-dev)"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
installed=$scratch/installed/usr
components=
for component in "$@"; do
  [[ $component == mpi && ! -f $build/cli/libshardtool_mpi.so ]] || components+=${components:+;}$component
done

cpack --config "$build/CPackConfig.cmake" -G DEB -B "$scratch" -D "CPACK_COMPONENTS_ALL=$components" >"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; exit 1; }
for package in "$scratch"/*.deb; do
  dpkg-deb -x "$package" "$scratch/installed"
  (cd "$scratch" && sha256sum --check "$package.sha256")
  # Packages without scripts leave no trace when they are removed.
  dpkg-deb --ctrl-tarfile "$package" | tar -t >"$scratch/control-files"
  if grep -E '(pre|post)(inst|rm)' "$scratch/control-files"; then exit 1; fi
done
if [[ $components == *cli* ]]; then
  "$installed/bin/shardtool" --version
  # No program writes to a pipe whose reader stops at its first match: it would end with SIGPIPE.
  dpkg-deb -f "$scratch"/shardtool_*.deb >"$scratch/control"
  grep -q '^Depends: .*libc6 (>= ' "$scratch/control"
  grep -q '^Suggests: .*libnccl2' "$scratch/control"
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
fi
if [[ $components == *mpi ]]; then
  "$installed/bin/shardtool" doctor --json >"$scratch/doctor" || true
  grep -q "through $installed/" "$scratch/doctor" || { cat "$scratch/doctor"; exit 1; }
fi
fail_on=warning
if [[ $components == *dev* ]]; then
  # Of programs lintian would also tell that they bind lazily.
  fail_on=warning,info
  [[ -s $installed/include/shardtool/layout/layout.h ]] || { echo "the package has no headers"; exit 1; }
  [[ -s $installed/lib/libshardtool_base.a ]] || { echo "the package has no archives"; exit 1; }
fi
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on "$fail_on" --display-info "$scratch"/*.deb
else
  echo "lintian is not installed, and was not asked"
fi
