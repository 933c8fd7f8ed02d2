#!/usr/bin/env bash
# usage: archives_test.sh BUILD SAMPLES
# Makes an archive of the program and one of the plugin for MPI, unpacks them into one folder, does the main job with the
# program there, and removes the folder. A build with SHARDTOOL_STATIC must need glibc and libgcc alone.
set -euo pipefail
build=$1 samples=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
components=$(sed -n 's/^set(CPACK_COMPONENTS_ALL "\(.*\)")$/\1/p' "$build/CPackConfig.cmake")
[[ -f $build/cli/libshardtool_mpi.so ]] || components=${components%;mpi}

fail() {
  echo "$1"
  exit 1
}

mkdir "$scratch/archives" "$scratch/anywhere" "$scratch/home"
cpack --config "$build/CPackConfig.cmake" -G TGZ -B "$scratch/archives" -D "CPACK_COMPONENTS_ALL=$components" \
  >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
rm -r "$scratch/archives/_CPack_Packages"
cd "$scratch/archives"
program=$(echo shardtool-[0-9]*.tar.gz)
folder=${program%.tar.gz}
version=${folder#shardtool-}
{
  printf '%s\n' "$program" "$program.sha256" "$folder.cdx.json"
  for part in ${components//;/ }; do
    [[ $part == cli ]] || printf '%s\n' "shardtool-$part-$version.tar.gz" "shardtool-$part-$version.tar.gz.sha256"
  done
} | sort >"$scratch/expected"
printf '%s\n' * | sort | diff "$scratch/expected" - || fail "these are not the archives of $components"
sha256sum --check -- *.sha256

# Each holds its own part alone.
tar -tf "$program" >"$scratch/members"
if grep -E "/include/|[.](a|so)$" "$scratch/members"; then exit 1; fi
if [[ $components == *dev* ]]; then
  tar -tf "shardtool-dev-$version.tar.gz" >"$scratch/members"
  grep -q "^$folder/include/shardtool/layout/layout.h$" "$scratch/members"
  grep -q "^$folder/lib/libshardtool_base.a$" "$scratch/members"
  if grep -E "/bin/|/man/" "$scratch/members"; then exit 1; fi
fi

cd "$scratch/anywhere"
tar -xf "$scratch/archives/$program"
[[ ! -f $scratch/archives/shardtool-mpi-$version.tar.gz ]] || tar -xf "$scratch/archives/shardtool-mpi-$version.tar.gz"
[[ $(echo *) == "$folder" ]] || fail "the archives have more than one folder"
cmp "$folder/share/doc/shardtool/shardtool.cdx.json" "$scratch/archives/$folder.cdx.json"
grep -q '"bomFormat": "CycloneDX"' "$scratch/archives/$folder.cdx.json"
# The program has a copy of the compiler's library, too.
if command -v python3 >/dev/null; then
  python3 -c 'import json, sys
bill = json.load(open(sys.argv[1]))
names = {part["name"] for part in bill["components"]}
assert names >= {"fmt", "nlohmann_json", "re2", "xxhash", "openssl"}, names
assert "libstdc++" in names or sys.argv[2] != "GNU", names
assert set(bill["dependencies"][0]["dependsOn"]) == names
assert all(part["version"] for part in bill["components"]), bill' "$scratch/archives/$folder.cdx.json" \
    "$(sed -n 's/.*CMAKE_CXX_COMPILER_ID "\(.*\)")/\1/p' "$build"/CMakeFiles/*/CMakeCXXCompiler.cmake | sed -n 1p)"
fi
for file in doc/shardtool/copyright bash-completion/completions/shardtool zsh/site-functions/_shardtool \
  shardtool/schemas/mapping-v1.json; do
  [[ -s $folder/share/$file ]] || fail "the archive has no share/$file"
done
if command -v scdoc >/dev/null; then
  grep -q 'strategy' "$folder/share/man/man5/shardtool-mapping.5"
  grep -q 'shardtool' "$folder/share/man/man1/shardtool-split.1"
fi

# The job needs nothing but the folder and leaves nothing but its output.
shardtool() {
  env -i HOME="$scratch/home" PATH=/usr/bin:/bin "$scratch/anywhere/$folder/bin/shardtool" "$@"
}
shardtool --version
shardtool -q split "$samples/tiny-llama" -o "$scratch/tp4" --tp 4
shardtool check "$scratch/tp4" --read-data
shardtool validate "$scratch/tp4" -r "$samples/tiny-llama" >"$scratch/validated"
grep '^pass' "$scratch/validated"
if [[ -e $folder/lib/shardtool/plugins ]]; then
  shardtool doctor --json >"$scratch/doctor" || true
  grep -q "through $scratch/anywhere/$folder/" "$scratch/doctor" || { cat "$scratch/doctor"; exit 1; }
fi
find "$scratch/home" -mindepth 1 >"$scratch/left"
[[ ! -s $scratch/left ]] || fail "the program left $(cat "$scratch/left")"

# Both are newer than the rest of what the program needs from the system (shardtool_own_libstdcxx).
if nm -D --undefined-only "$folder/bin/shardtool" | grep -E ' (arc4random|_dl_find_object)(@|$)'; then
  fail "the program needs a glibc as new as that of the build"
fi
if grep -q '^set(CPACK_SHARDTOOL_STATIC "\?ON"\?)' "$build/CPackConfig.cmake"; then
  ldd "$folder/bin/shardtool" >"$scratch/libraries"
  if grep -vE '^\s*(linux-vdso|/lib|lib(c|m|dl|rt|pthread|gcc_s)[.]so)' "$scratch/libraries"; then
    fail "the program needs more than glibc and libgcc"
  fi
else
  grep -q 'DSHARDTOOL_STATIC=ON' "$scratch/log" || fail "cpack did not say that the program needs shared libraries"
fi
