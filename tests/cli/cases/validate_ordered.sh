# Equal bits of order-matched runs are a proof; others are told and change no exit code.
model=$samples/tiny-llama
shardtool -q split "$model" -o parts --tp 2
try() { shardtool validate "$@"; echo "-> $?"; }
try parts --reference "$model" --ordered
try parts --reference "$model" --ordered --quick --json

# One bit of one weight: the field fails, and the bits are told beside it.
cp -r parts changed
file=changed/model-rank-1-part-0.safetensors
at=$(($(stat -c %s "$file") - 301))
byte=$(od -An -tu1 -j "$at" -N 1 "$file")
printf "\\x$(printf %x $((byte ^ 1)))" | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
shardtool validate changed -r "$model" --ordered > report; echo "-> $?"
grep -E "^ordered|V3" report
shardtool validate changed -r "$model" --ordered --json | grep -o '"name": "ordered bf16".*"findings"'

# The headers are the verdict: nothing ran.
rm "$file"
shardtool validate changed -r "$model" --ordered | grep V3
