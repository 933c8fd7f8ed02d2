#!/usr/bin/env bash
# A run that a failing disk ends is resumed by the very line that it prints, to the bytes of an undisturbed run, and
# another run of the same output is kept out meanwhile. Needs strace (77: skipped).
#   resume.sh SHARDTOOL
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
shardtool=$1
if ! command -v strace >/dev/null || ! strace -f -o /dev/null true 2>/dev/null; then
  echo "SKIPPED: no strace here for failing system calls"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin && ln -s "$shardtool" bin/shardtool
PATH=$work/bin:$PATH

# shellcheck source=tests/hostile/sparse_source.sh
source "$here/sparse_source.sh"
sparse_source

shardtool split source -m mapping.json -o undisturbed -q >/dev/null

status=0
strace -f -o trace -e inject=pwrite64:error=EIO:when=70 \
  shardtool split source -m mapping.json -o 'an output' --threads 1 2>err || status=$?
grep -q INJECTED trace || { echo "no call was made to fail"; exit 1; }
[[ $status == 5 ]] || { echo "exit status $status, expected 5"; cat err; exit 1; }
[[ ! -e 'an output' ]] || { echo "published"; exit 1; }
grep -q '= kept: ' err || { echo "nothing is said to be kept"; cat err; exit 1; }

line=$(sed -n 's/.*help: go on with: //p' err)
[[ $line == "shardtool split source -m mapping.json -o 'an output' --threads 1 --resume" ]] ||
  { echo "another line: $line"; exit 1; }
shardtool resume --list . >out
grep -q "^run      $work/an output: [0-9]* of [0-9]* tensors finished, .* on disk" out && grep -qxF "go on    $line" out ||
  { echo "listed as"; cat out; exit 1; }
(flock -n 9 || exit 9; status=0
 bash -c "$line" 2>err || status=$?
 [[ $status == 5 ]] && grep -q E0404 err) 9>'.an output.shardtool.lock' ||
  { echo "two runs at once:"; cat err; exit 1; }

bash -c "$line" >out
grep -q '^resumed .* were finished and are intact' out || { cat out; exit 1; }
diff -r undisturbed 'an output'
leftovers=$(ls -A | grep '^\.' || true)
[[ -z $leftovers ]] || { echo "left behind: $leftovers"; exit 1; }
bash -c "$line" >out
grep -q 'complete already' out || { cat out; exit 1; }

# A run that is killed can be discarded, and nothing of it is left.
strace -f -o trace -e inject=pwrite64:signal=KILL:when=70 \
  shardtool split source -m mapping.json -o discarded --threads 1 2>err && { echo "it was not killed"; exit 1; }
grep -q "^run      $work/discarded: " <(shardtool resume --list .) || { echo "a killed run is not listed"; exit 1; }
shardtool resume --discard discarded >out
leftovers=$(ls -A | grep '^\.' || true)
[[ -z $leftovers ]] || { echo "left behind: $leftovers"; exit 1; }
echo "resumed to the bytes of an undisturbed run"
