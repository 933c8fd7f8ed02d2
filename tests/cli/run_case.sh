#!/bin/bash
# Runs one case of the command line in a scratch folder and compares what it prints.
#
#   run_case.sh [--update] SHARDTOOL SCHEMAS CASE.sh
#
# A case is NAME.sh beside NAME.stdout, NAME.stderr (absent: nothing is printed) and NAME.exit
# (absent: 0). In the two texts [..] stands for any part of a line and a line ... for any number of
# lines. In a case, `shardtool` is the program, $samples the sample checkpoints, and
# "$golden_model" NAME FOLDER writes a model of tests/golden, $packed_models/FORMAT is one with
# packed weights; the folder is empty. Every document
# that `shardtool --json` prints is compared with its schema, where python3 has jsonschema. --update writes what was printed into the files, unless it matches what they hold.
set -u

update=0
if [ "$1" = --update ]; then update=1; shift; fi
program=$(realpath "$1") schemas=$(realpath "$2") case=$(realpath "$3")
here=$(dirname "$(realpath "$0")")
expected=${case%.sh}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/case" "$scratch/documents"
cat > "$scratch/bin/shardtool" <<EOF
#!/bin/bash
case " \$* " in
  *" --json "*) ;;
  *) exec "$program" "\$@" ;;
esac
document=\$(mktemp -p "$scratch/documents")
"$program" "\$@" > "\$document"; status=\$?
cat "\$document"
exit \$status
EOF
chmod +x "$scratch/bin/shardtool"

unset NO_COLOR FORCE_COLOR CLICOLOR_FORCE GITHUB_ACTIONS
unset SHARDTOOL_COLOR SHARDTOOL_PROGRESS SHARDTOOL_MAX_MEMORY SHARDTOOL_THREADS
export LC_ALL=C TERM=dumb program samples="$here/../../samples"
export golden_model="${program%/cli/*}/tests/golden/golden_model" packed_models="${program%/cli/*}/tests/golden/packed"
(cd "$scratch/case" && PATH="$scratch/bin:$PATH" bash -u "$case") \
  > "$scratch/stdout" 2> "$scratch/stderr" < /dev/null
echo $? > "$scratch/exit"

# glob LINE: a shell pattern for an expected line, [..] as *, everything else as it is.
glob() {
  local rest=$1 out='' part
  while [[ $rest == *'[..]'* ]]; do
    part=${rest%%'[..]'*}
    out+=$(printf '%q' "$part")'*'
    rest=${rest#*'[..]'}
  done
  [ -n "$rest" ] && out+=$(printf '%q' "$rest")
  printf '%s' "$out"
}

# matches EXPECTED ACTUAL: line by line; ... skips ahead to the next line that fits.
matches() {
  local -a want have
  mapfile -t want < "$1"
  mapfile -t have < "$2"
  local w=0 h=0 skipping=0 pattern
  while [ $w -lt ${#want[@]} ]; do
    if [ "${want[w]}" = ... ]; then skipping=1; w=$((w + 1)); continue; fi
    [ $h -lt ${#have[@]} ] || return 1
    pattern=$(glob "${want[w]}")
    if eval "[[ \${have[h]} == ${pattern:-\"\"} ]]"; then
      skipping=0 w=$((w + 1))
    elif [ $skipping = 0 ]; then
      return 1
    fi
    h=$((h + 1))
  done
  [ $skipping = 1 ] || [ $h = ${#have[@]} ]
}

failed=0
for stream in exit stdout stderr; do
  golden="$expected.$stream"
  if [ ! -e "$golden" ]; then
    golden="$scratch/default"
    if [ $stream = exit ]; then echo 0 > "$golden"; else : > "$golden"; fi
  fi
  matches "$golden" "$scratch/$stream" && continue
  if [ $update = 1 ]; then
    cp "$scratch/$stream" "$expected.$stream"
    echo "updated $(basename "$expected").$stream"
    continue
  fi
  failed=1
  echo "--- $stream differs (expected, got)"
  diff "$golden" "$scratch/$stream"
done

if python3 -c 'import jsonschema' 2> /dev/null; then
  for document in "$scratch"/documents/*; do
    [ -e "$document" ] || continue
    python3 -W ignore "$here/check_document.py" "$schemas" "$document" || failed=1
  done
fi
exit $failed
