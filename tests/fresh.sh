#!/usr/bin/env bash
# usage: bash tests/fresh.sh        (as root)
# Runs the quickstart and the tests, as committed, in a bare root of this machine's own release: proof
# that both need nothing that only this machine has. The bare root is made once by debootstrap, from
# the mirror that apt uses here, and kept in $SHARDTOOL_FRESH_CACHE (default /var/tmp/shardtool-fresh).
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$repository/samples/setup.sh"

if ((EUID != 0)); then
  echo "error: tests/fresh.sh makes a root folder and mounts /proc in it: run it as root" >&2
  exit $exit_unavailable
fi
install_packages "${fresh_packages[@]}"

cache=${SHARDTOOL_FRESH_CACHE:-/var/tmp/shardtool-fresh}
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
base=$cache/$suite-$(dpkg --print-architecture).tar
mkdir -p "$cache"
scratch=$(mktemp -d "$cache/run.XXXXXX")
trap 'rm -rf --one-file-system "$scratch"' EXIT
bare=$scratch/root

# shellcheck disable=SC2016  # apt expands it
mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $suite" \
    'Component: main' | sed -n 1p
}

make_base() {
  local from
  from=$(mirror)
  [[ -n $from ]] || { echo "error: apt has no mirror for '$suite' here" >&2; exit 6; }
  debootstrap --variant=minbase "$suite" "$scratch/base" "$from" >"$scratch/log" ||
    { tail "$scratch/log" >&2; exit 6; }
  tar -C "$scratch/base" -cf "$scratch/base.tar" .
  mv "$scratch/base.tar" "$base"
}

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

# The mounts are in a namespace of their own, which ends with the command.
# shellcheck disable=SC2016  # the inner shell expands it
inside() {
  unshare --mount bash -c 'mount --bind /proc "$1/proc" && exec chroot "$@"' inside "$bare" \
    env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} "$@"
}

[[ -f $base ]] || step "bare $suite" make_base
step "unpack" unpack
step "quickstart, first run" inside bash /shardtool/samples/quickstart.sh
step "quickstart, second run" inside bash /shardtool/samples/quickstart.sh
step "tests" inside bash /shardtool/tests/run.sh
