#!/usr/bin/env bash
# usage: bash samples/quickstart.sh [--no-install] [OUTPUT FOLDER]
# Installs what is missing, builds shardtool, cuts the sample checkpoint for 4 devices, recuts it for 8,
# merges it again and proves that every byte came back. Debian 12, Ubuntu 24.04; as root or with sudo.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/samples/setup.sh"

install=yes
out=
while (($#)); do
  case $1 in
    --no-install) install=no ;;
    -h | --help) sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) echo "error: unknown option '$1' (--no-install is the only one)" >&2; exit 2 ;;
    *) [[ -z $out ]] || { echo "error: one output folder, not '$out' and '$1'" >&2; exit 2; }
      out=$(realpath -m "$1") ;;
  esac
  shift
done
[[ -n $out ]] || out=$(mktemp -d "${TMPDIR:-/tmp}/shardtool-quickstart.XXXXXX")
mkdir -p "$out"

build_shardtool() {
  [[ -f build/release/build.ninja ]] || configure release -DBUILD_TESTING=OFF
  cmake --build --preset release --parallel "$(nproc)" --target shardtool
}

# Prints the command line as one would type it, and runs it.
shardtool() {
  printf '\n$ shardtool %s\n' "$*"
  build/release/cli/shardtool "$@"
}

# Every tensor of a safetensors file as "name dtype shape sha256": read without shardtool.
list_tensors() {
  local file=$1 header name dtype shape begin end
  header=$(od -An -tu8 -N8 "$file" | tr -d ' ')
  head -c $((8 + header)) "$file" | tail -c "$header" | grep -o '"[^"]*":{"dtype":[^}]*}' |
    sed -E 's/"([^"]*)":\{"dtype":"(.*)","shape":(.*),"data_offsets":\[(.*),(.*)\]\}/\1 \2 \3 \4 \5/' |
    while read -r name dtype shape begin end; do
      echo "$name $dtype $shape $(head -c $((8 + header + end)) "$file" |
        tail -c $((end - begin)) | sha256sum)"
    done
}

compare_tensors() {
  local file
  for file in "$sample"/*.safetensors; do list_tensors "$file"; done | sort >"$out/original.txt"
  for file in "$out"/merged/*.safetensors; do list_tensors "$file"; done | sort >"$out/merged.txt"
  [[ -s $out/original.txt ]] && diff "$out/original.txt" "$out/merged.txt"
}

cd "$root"
sample=samples/tiny-llama
if [[ $install == yes ]]; then
  step "install packages" install_packages "${build_packages[@]}"
fi
step "build" build_shardtool

shardtool inspect "$sample"
shardtool split "$sample" -o "$out/tp4" --mesh tp=4
shardtool inspect "$out/tp4"
shardtool reshard "$out/tp4" --to-mesh tp=8 -o "$out/tp8"
shardtool explain "$sample" model.layers.0.self_attn.k_proj.weight --mesh tp=8
shardtool merge "$out/tp8" -o "$out/merged"
shardtool diff "$sample" "$out/merged"
shardtool validate "$out/tp8" --reference "$sample"
compare_tensors

printf '\noutputs  %s\n' "$out"
echo "proof    split to 4, recut to 8, merged: diff says equal, and so does the SHA-256 of each of the"
echo "         $(wc -l <"$out/merged.txt") tensors, taken without shardtool"
echo "program  $root/build/release/cli/shardtool; onto the PATH, with man pages and completions:"
echo "         cmake --build --preset release && cmake --install build/release --prefix /usr/local"
