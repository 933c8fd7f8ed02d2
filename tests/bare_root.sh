# shellcheck shell=bash disable=SC2034,SC2154
# Sourced after samples/setup.sh: bare roots, made once by debootstrap and kept in $SHARDTOOL_FRESH_CACHE (default
# /var/tmp/shardtool-fresh).

bare_cache=${SHARDTOOL_FRESH_CACHE:-/var/tmp/shardtool-fresh}

# own_suite: the release of this machine.
own_suite() {
  (. /etc/os-release && echo "$VERSION_CODENAME")
}

# own_mirror SUITE: the mirror that apt uses here for a release of this machine's distribution.
own_mirror() {
  # shellcheck disable=SC2016  # apt expands it
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $1" 'Component: main' | sed -n 1p
}

# bare_paths SUITE: sets base, the archive of a bare root, scratch, which goes when the script ends, and bare, a root in it.
bare_paths() {
  base=$bare_cache/$1-$(dpkg --print-architecture).tar
  mkdir -p "$bare_cache"
  scratch=$(mktemp -d "$bare_cache/run.XXXXXX")
  trap 'rm -rf --one-file-system "$scratch"' EXIT
  bare=$scratch/root
}

# make_bare SUITE MIRROR SCRATCH TAR: debootstraps a release, where the archive is not there yet.
make_bare() {
  [[ ! -f $4 ]] || return 0
  [[ $2 ]] || { echo "error: apt has no mirror for '$1' here" >&2; exit "$exit_unavailable"; }
  local components=main
  [[ $2 != *ubuntu* ]] || components=main,universe  # python3-venv
  debootstrap --variant=minbase --components="$components" "$1" "$3/base" "$2" >"$3/log" || { tail "$3/log" >&2; exit "$exit_unavailable"; }
  tar -C "$3/base" -cf "$3/base.tar" .
  mv "$3/base.tar" "$4"
  rm -rf --one-file-system "$3/base"
}

# in_bare ROOT COMMAND...: the mounts are in a namespace of their own, which ends with the command.
in_bare() {
  # shellcheck disable=SC2016  # the inner shell expands it
  unshare --mount bash -c 'mount --bind /proc "$1/proc" && exec chroot "$@"' inside "$1" \
    env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} "${@:2}"
}
