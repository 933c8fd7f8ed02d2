# shellcheck shell=bash disable=SC2034
# Sourced by samples/quickstart.sh and tests/run.sh: what to install, and how a step is run.
# Debian 12 and Ubuntu 24.04 have every package below; nothing else is downloaded.

build_packages=(g++ cmake ninja-build pkg-config nlohmann-json3-dev libfmt-dev
  libre2-dev libxxhash-dev libssl-dev libcurl4-openssl-dev scdoc)
test_packages=(doctest-dev librapidcheck-dev libbenchmark-dev libopenmpi-dev openmpi-bin python3
  python3-jsonschema)
tidy_packages=(clang-19 clang-tidy-19)
fuzz_packages=(clang-19 libclang-rt-19-dev)
# Cross build for arm64, on Debian; the tests of MPI need a machine.
arm64_packages=(g++-aarch64-linux-gnu qemu-user-static libfmt-dev:arm64 libre2-dev:arm64 libxxhash-dev:arm64
  libssl-dev:arm64 libcurl4-openssl-dev:arm64 librapidcheck-dev:arm64)
fresh_packages=(debootstrap git)

# The status of a run that lacks something outside the repository (cli/exit_code.h).
exit_unavailable=6

# step TITLE COMMAND...: runs the command and says how long it took.
step() {
  local title=$1 start=$SECONDS
  shift
  printf '==> %s\n' "$title"
  "$@"
  printf '    %s: %d s\n' "$title" $((SECONDS - start))
}

# install_packages NAME...: installs those that are missing; needs root or sudo only then.
install_packages() {
  local package missing=() as_root=() log
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if ! command -v apt-get >/dev/null; then
    echo "error: no apt-get here; install the equivalents of: ${missing[*]}" >&2
    echo "help: then run again with --no-install" >&2
    exit $exit_unavailable
  fi
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "error: packages are missing, and this is neither root nor is sudo here" >&2
      echo "help: as root, apt-get install --no-install-recommends ${missing[*]}" >&2
      exit $exit_unavailable
    fi
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}"
  [[ ${missing[*]} != *:arm64* ]] || "${as_root[@]}" dpkg --add-architecture arm64
  "${as_root[@]}" apt-get update -qq
  # Hundreds of lines that matter only when it fails.
  log=$(mktemp)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
    { tail -n 40 "$log" >&2; exit $exit_unavailable; }
  rm "$log"
}

is_installed() {
  [[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

# configure PRESET OPTION...: with ccache where it is installed. A build from nothing compiles sources together, which takes
# two thirds of the time; one that is there stays as it is. clang's presets look at single files.
configure() {
  local preset=$1 launcher=() together=()
  shift
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  if [[ ! -f build/$preset/CMakeCache.txt && ! $preset =~ ^(tidy|fuzz)$ ]]; then
    together=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=32)
  fi
  cmake --preset "$preset" --log-level=WARNING "${launcher[@]}" "${together[@]}" "$@"
}
