#!/usr/bin/env bash
# Installs what is missing, builds and runs every test. Debian 12, Ubuntu 24.04; as root or with sudo.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/samples/setup.sh"

usage() {
  cat <<'TEXT'
usage: bash tests/run.sh [--asan | --tsan | --tidy | --arm64] [--filter REGEX] [--bench] [--no-install]
       bash tests/run.sh --fuzz [SECONDS]
       bash tests/run.sh --chaos [MINUTES]
       bash tests/run.sh --engines
       bash tests/run.sh --python
       bash tests/run.sh --stores
       bash tests/run.sh --gpu
       bash tests/run.sh --fresh

  --asan           build and test with the address and undefined-behaviour sanitizers
  --tsan           build and test what has threads (comm, exec, store) with the thread sanitizer
  --tidy           build and test with clang-19, clang-tidy on every file
  --arm64          cross build for arm64, and test with QEMU; on Debian
  --filter REGEX   only the tests whose name matches
  --bench          print the benchmark tables, too
  --fuzz [SECONDS] build the libFuzzer targets with clang-19 and run each, 60 seconds unless said
  --chaos [MINUTES] disturb random runs of the program for so long, 30 minutes unless said, resume them and compare
                   the bytes
  --engines        have torch, vLLM and SGLang load what the program writes; downloads 2.7 GB once
  --python         build the wheel, install it into a fresh environment and test the module; fetches what pip needs
  --stores         read and write object stores, moto and Swift, which pip fetches
  --gpu            only what runs on a GPU, and its table of times; fails where there is no GPU
  --no-install     install nothing
  --fresh          run this and samples/quickstart.sh in a bare root of this machine's release

The last line is "N passed, N failed, N skipped"; exit status 0 when nothing failed.
TEXT
}

usage_error() {
  printf 'error: %s\n\n' "$1" >&2
  usage >&2
  exit 2
}

preset=release
packages=("${build_packages[@]}" "${test_packages[@]}")
filter=()
bench=no
fuzz_seconds=
chaos_minutes=
install=yes
gpu=no
engines=no
python=no
stores=no
while (($#)); do
  case $1 in
    --asan) preset=asan ;;
    --tsan) preset=tsan ;;
    --tidy) preset=tidy packages+=("${tidy_packages[@]}") ;;
    --arm64) preset=arm64 packages+=("${arm64_packages[@]}") ;;
    --filter) (($# > 1)) || usage_error "--filter needs a regular expression"
      filter=(--tests-regex "$2"); shift ;;
    --bench) bench=yes ;;
    --fuzz) fuzz_seconds=60 preset=fuzz packages=("${build_packages[@]}" "${fuzz_packages[@]}")
      if [[ ${2-} =~ ^[0-9]+$ ]]; then fuzz_seconds=$2; shift; fi ;;
    --chaos) chaos_minutes=30
      if [[ ${2-} =~ ^[0-9.]+$ ]]; then chaos_minutes=$2; shift; fi ;;
    --engines) engines=yes ;;
    --python) python=yes ;;
    --stores) stores=yes ;;
    --gpu) gpu=yes filter=(--tests-regex GPU) ;;
    --no-install) install=no ;;
    --fresh) exec bash "$root/tests/fresh.sh" ;;
    -h | --help) usage; exit 0 ;;
    *) usage_error "unknown option '$1'" ;;
  esac
  shift
done

build=$root/build/$preset
junit=$build/junit.xml

# Two tests more than there are cores: a third of the time tests wait for disks, pauses and each other.
run_tests() {
  rm -f "$junit"
  ctest --preset "$preset" --parallel $(($(nproc) + 2)) --no-tests=error --output-junit "$junit" \
    "${filter[@]}" || failed=yes
}

# Prints the skipped tests, each with its reason (the line of its output that begins with
# "SKIPPED: "), and then the counts. A test that could not be started has failed.
report() {
  awk '
    match($0, /<testcase name="[^"]*"/)  { name = substr($0, RSTART + 16, RLENGTH - 17)
                                           state = "failed"; reason = "no reason given" }
    /<testcase .* status="run"/          { state = "passed" }
    /<testcase .* status="disabled"/     { state = "skipped"; reason = "disabled" }
    /<skipped message="SKIP_/            { state = "skipped" }
    match($0, /SKIPPED: .*/)             { reason = substr($0, RSTART + 9) }
    /<\/testcase>/ { ++count[state]; if (state == "skipped") print "skipped  " name ": " reason }
    END { printf "%d passed, %d failed, %d skipped\n",
                 count["passed"], count["failed"], count["skipped"] }
  ' "$junit" | sed 's/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&apos;/'\''/g; s/&amp;/\&/g'
}

cd "$root"
if [[ $install == yes ]]; then
  step "install packages" install_packages "${packages[@]}"
fi
if [[ $fuzz_seconds ]]; then
  step "configure $preset" configure "$preset"
  step "build $preset" cmake --build --preset "$preset" --parallel "$(nproc)"
  exec bash tests/fuzz/run.sh "$build" "$fuzz_seconds"
fi
if [[ $chaos_minutes ]]; then
  step "configure $preset" configure "$preset" -DBUILD_TESTING=ON
  step "build $preset" cmake --build --preset "$preset" --parallel "$(nproc)" --target shardtool shardtool_failing_calls
  python3 tests/chaos/chaos.py "$build/cli/shardtool" "$build/tests/chaos/libshardtool_failing_calls.so" \
    --minutes "$chaos_minutes" && { echo "1 passed, 0 failed, 0 skipped"; exit 0; }
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi
if [[ $python == yes ]]; then
  exec bash tests/python/run.sh
fi
if [[ $engines == yes ]]; then
  step "configure $preset" configure "$preset" -DBUILD_TESTING=ON
  step "build $preset" cmake --build --preset "$preset" --parallel "$(nproc)" --target shardtool golden_model
  exec bash tests/engines/run.sh "$build/cli/shardtool" "$build/tests/golden/golden_model"
fi
if [[ $stores == yes ]]; then
  step "configure $preset" configure "$preset" -DBUILD_TESTING=ON
  step "build $preset" cmake --build --preset "$preset" --parallel "$(nproc)" --target shardtool
  exec bash tests/stores/run.sh "$build/cli/shardtool"
fi
# Without a GPU the kernels only have to compile, for which one architecture is enough.
options=(-DBUILD_TESTING=ON -DSHARDTOOL_CUDA_ARCH=80)
[[ $gpu == no ]] || options=(-DBUILD_TESTING=ON -DSHARDTOOL_BENCHMARKS=ON -DSHARDTOOL_CUDA_ARCH=)
step "configure $preset" configure "$preset" "${options[@]}"
step "build $preset" cmake --build --preset "$preset" --parallel "$(nproc)"
failed=no
step "test $preset" run_tests
if [[ $bench == yes ]]; then
  step "benchmarks" bash tests/bench/run.sh "$build"
fi
# Whoever asks for a GPU is not served by tests that skip: the table needs one.
if [[ $gpu == yes ]]; then
  [[ -x $build/tests/bench/gpu_bench ]] || { echo "error: no nvcc, so no kernels" >&2; exit 1; }
  "$build/tests/bench/gpu_bench" || failed=yes
fi
[[ -f $junit ]] || { echo "error: ctest ran no test" >&2; exit 1; }
report
[[ $failed == no ]]
