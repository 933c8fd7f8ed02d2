#!/usr/bin/env bash
# usage: bash tests/bare_install.sh WHEEL|DEB... [-- SUITE MIRROR]        (as root)
#
# Installs a wheel, or Debian packages together, into a bare root that has nothing else than what they depend on (for a
# wheel python3-venv), does the first job of the README with it, removes it, and fails if a file is left. The root is of
# this machine's release, or of SUITE from MIRROR, such as noble http://archive.ubuntu.com/ubuntu.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$repository/samples/setup.sh"
source "$repository/tests/bare_root.sh"

files=()
while (($#)) && [[ $1 != -- ]]; do
  files+=("$(realpath "$1")")
  shift
done
((${#files[@]})) || { sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
suite=${2-$(own_suite)}
mirror=${3-$(own_mirror "$suite")}
((EUID == 0)) || { echo "error: this makes a root folder and mounts /proc in it: run it as root" >&2; exit "$exit_unavailable"; }
install_packages debootstrap

bare_paths "$suite"

unpack() {
  mkdir -p "$bare"
  tar -C "$bare" -xf "$base"
  cp -L /etc/resolv.conf /etc/hosts "$bare/etc/"
  cp -a "$repository/samples" "${files[@]}" "$bare/tmp/"
  in_bare "$bare" apt-get update -qq
}

# quietly COMMAND...: in the root; hundreds of lines that matter only when it fails.
quietly() {
  in_bare "$bare" "$@" >"$scratch/log" 2>&1 || { tail -n 40 "$scratch/log" >&2; exit 1; }
}

dependencies() {
  local file depends=()
  for file in "${files[@]}"; do
    if [[ $file == *.whl ]]; then
      quietly apt-get install -y -qq --no-install-recommends python3-venv
      return
    fi
    depends+=("$(dpkg-deb -f "$file" Depends | sed -E 's/shardtool \([^)]*\)(, )?//')")
  done
  quietly apt-get satisfy -y -qq --no-install-recommends "${depends[@]}"
}

list() {
  in_bare "$bare" find / -xdev -path /proc -prune -o -path /tmp -prune -o -path /var/log -prune -o -printf '%y %m %p\n' | sort
}

add() {
  if [[ ${files[0]} == *.whl ]]; then
    quietly /opt/venv/bin/pip install --no-index --no-deps --disable-pip-version-check "/tmp/${files[0]##*/}"
  else
    quietly dpkg -i "${files[@]/#*\//\/tmp\/}"
  fi
}

job() {
  # shellcheck disable=SC2016  # the inner shell expands it
  in_bare "$bare" bash -euc 'cd /tmp; PATH=/opt/venv/bin:$PATH
    shardtool -q split samples/tiny-llama -o tp4 --tp 4
    shardtool validate tp4 -r samples/tiny-llama | tail -n 1'
  [[ ${files[0]} == *.whl ]] || return 0
  in_bare "$bare" /opt/venv/bin/python -c 'import shardtool as st
assert st.validate("/tmp/tp4", reference="/tmp/samples/tiny-llama").ok'
}

remove() {
  local names=() file
  if [[ ${files[0]} == *.whl ]]; then
    quietly /opt/venv/bin/pip uninstall -y --disable-pip-version-check shardtool
    return
  fi
  for file in "${files[@]}"; do names+=("$(dpkg-deb -f "$file" Package)"); done
  quietly dpkg --purge "${names[@]}"
}

step "bare $suite" make_bare "$suite" "$mirror" "$scratch" "$base"
step "unpack" unpack
step "install what it depends on" dependencies
[[ ${files[0]} != *.whl ]] || in_bare "$bare" python3 -m venv /opt/venv
list >"$scratch/before"
step "install" add
step "split and validate" job
step "remove" remove
list >"$scratch/after"
diff "$scratch/before" "$scratch/after" || { echo "1 failed: files are left or changed"; exit 1; }
echo "no trace: $(wc -l <"$scratch/after") files before and after"
