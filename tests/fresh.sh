#!/usr/bin/env bash
# usage: bash tests/fresh.sh        (as root)
# Runs the quickstart and the tests, as committed, in a bare root of this machine's own release: proof
# that both need nothing that only this machine has. The bare root is made once by debootstrap, from
# the mirror that apt uses here, and kept in $SHARDTOOL_FRESH_CACHE (default /var/tmp/shardtool-fresh).
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$repository/samples/setup.sh"
source "$repository/tests/bare_root.sh"

if ((EUID != 0)); then
  echo "error: tests/fresh.sh makes a root folder and mounts /proc in it: run it as root" >&2
  exit $exit_unavailable
fi
install_packages "${fresh_packages[@]}"

suite=$(own_suite)
bare_paths "$suite"

# The bare root with this machine's way to its packages, and the committed tree in /shardtool.
unpack() {
  mkdir -p "$bare"
  tar -C "$bare" -xf "$base"
  rm -rf "$bare/etc/apt"
  cp -a /etc/apt "$bare/etc/apt"
  cp -a /usr/share/keyrings/. "$bare/usr/share/keyrings/"
  cp -L /etc/resolv.conf /etc/hosts "$bare/etc/"
  mkdir "$bare/shardtool"
  git -c safe.directory="$repository" -C "$repository" archive HEAD | tar -C "$bare/shardtool" -x
}

step "bare $suite" make_bare "$suite" "$(own_mirror "$suite")" "$scratch" "$base"
step "unpack" unpack
step "quickstart, first run" in_bare "$bare" bash /shardtool/samples/quickstart.sh
step "quickstart, second run" in_bare "$bare" bash /shardtool/samples/quickstart.sh
step "tests" in_bare "$bare" bash /shardtool/tests/run.sh
