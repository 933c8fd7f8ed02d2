#!/usr/bin/env bash
# Names of tensors, paths, mesh axes, manifests' names and excerpts of files that a terminal would act on or show in
# another order, through everything that the program prints: its output is UTF-8 and has none of those characters.
#   terminal.sh SHARDTOOL
set -euo pipefail
export LC_ALL=C
shardtool=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runs=0

# Screen control, C1, the marks of bidirectional text, an end of line, and as JSON has them.
raw=$'\e]0;title\a\e[2J\xc2\x9b31m\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8\x7f'
json='\u001b]0;title\u0007\u001b[2J\u009b31m\u202e\u2066\u200f\u061c\u2028\u007f\n\r'
bytes=$'\xff\xc3\xed\xa0\x80'

# shows COMMAND...: whatever its exit status, a terminal shows what it prints.
shows() {
  "$@" >"$work/stdout" 2>"$work/stderr" || true
  cat "$work/stdout" "$work/stderr" >"$work/all"
  if grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]' "$work/all" ||
    ! iconv -f UTF-8 -t UTF-8 "$work/all" >/dev/null; then
    echo "reaches the terminal: $(printf '%q ' "$@")"
    od -c "$work/all" | head -40
    exit 1
  fi
  runs=$((runs + 1))
}

# tells COMMAND...: and the hostile text was in it.
tells() {
  shows "$@"
  grep -qi 'u202e\|\\xff\|'$'\xef\xbf\xbd' "$work/all" || { cat "$work/all"; echo "says nothing of it: $(printf '%q ' "$@")"; exit 1; }
}

# write FILE HEADER BYTES: a file of tensors.
write() {
  local length=${#2} prefix=
  for _ in 1 2 3 4 5 6 7 8; do
    prefix+=$(printf '\\x%02x' $((length & 255)))
    length=$((length >> 8))
  done
  { printf '%b' "$prefix"; printf %s "$2"; head -c "$3" /dev/zero; } >"$1"
}

mkdir "$work/model"
header='{"'$json'.w":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]},"b'$json'":{"dtype":"F32","shape":[4],"data_offsets":[64,80]}}'
write "$work/model/model.safetensors" "$header" 80
mapping='{"version":1,"mesh":[{"axis":"tp","size":2}],"rules":[{"match":"**.w","strategy":"rowwise"},{"match":"b**","strategy":"replicate"}]}'
printf %s "$mapping" >"$work/m.json"

for format in text json csv tsv md; do
  tells "$shardtool" inspect "$work/model" -m "$work/m.json" --query name,rule --format $format
done
tells "$shardtool" inspect "$work/model" -m "$work/m.json" --json
tells "$shardtool" inspect "$work/model" -m "$work/m.json" --mesh "x$raw=2,tp=2"
tells "$shardtool" inspect "$work/model" -m "$work/m.json" --mesh "x$bytes=2,tp=2"
tells "$shardtool" inspect "$work/model" -m "$work/m.json" --mesh "x$raw=2,tp=2" --json
tells "$shardtool" split "$work/model" -m "$work/m.json" --mesh "x$raw=2" -n -o "$work/o"
tells "$shardtool" inspect "$work/$raw$bytes"
tells "$shardtool" inspect "$work/$raw$bytes" --json
tells "$shardtool" "$raw$bytes"
tells "$shardtool" inspect "--$raw$bytes"
tells "$shardtool" inspect "$work/model" -m "$work/$raw$bytes.json"
shows "$shardtool" plan "$work/model" -m "$work/m.json"
shows "$shardtool" plan "$work/model" -m "$work/m.json" --json
tells "$shardtool" explain "$work/model" "$raw.w" -m "$work/m.json"
shows "$shardtool" split "$work/model" -m "$work/m.json" -o "$work/$raw$bytes.out" --progress always
tells "$shardtool" merge "$work/$raw$bytes.out" -o "$work/merged $raw$bytes" --progress json

# An excerpt of a mapping, at the place of what is wrong in it.
cd "$work"
for text in "$json" "$raw" "$bytes"; do
  printf '{"version":1,"mesh":[{"axis":"tp","size":2}],\n"rules":[{"match":"%s","strategy":"no%s"}]}' "$text" "$text" >"$work/bad.json"
  tells "$shardtool" inspect "$work/model" -m bad.json
  shows "$shardtool" inspect "$work/model" -m bad.json --json
done

# Names in a manifest, in a copy of which something is wrong.
"$shardtool" split "$work/model" -m "$work/m.json" -o "$work/shards" -q
sed -i 's/"model-rank-1-part-0.safetensors"/"model-rank-1\\u001b[2J\\u202e.safetensors"/' "$work/shards/manifest.json"
tells "$shardtool" merge "$work/shards" -o "$work/again"
tells "$shardtool" merge "$work/shards" -o "$work/again" --json
for format in text json github sarif junit gitlab; do
  tells "$shardtool" check "$work/shards" --format $format
done
mkdir "$work/other"
write "$work/other/model.safetensors" '{"c'"$json"'":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' 16
tells "$shardtool" diff "$work/model" "$work/other"
tells "$shardtool" diff "$work/model" "$work/other" --json
# A mapping that is printed is JSON, and means the same.
tells "$shardtool" init "$work/model"

echo "$runs runs printed nothing that a terminal acts on"
