# The exit code is the answer: 0 the shards compute what the model computes, 1 they do not.
model=$samples/tiny-llama
shardtool -q split "$model" -o parts --tp 2
try() { shardtool validate "$@"; echo "-> $?"; }
try parts --reference "$model"
try parts --reference "$model" --quick -q
try parts --quick
try parts -r "$model" --json

# One bit of one weight, which no tolerance would see.
cp -r parts changed
file=changed/model-rank-1-part-0.safetensors
at=$(($(stat -c %s "$file") - 301))
byte=$(od -An -tu1 -j "$at" -N 1 "$file")
printf "\\x$(printf %x $((byte ^ 1)))" | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
shardtool validate changed -r "$model" > report; echo "-> $?"
grep -E "^fault|^ {9}|V1|^digest|^fail" report
shardtool validate changed -r "$model" --quick -q | grep -c "^fault"
shardtool validate changed -r "$model" --json > /dev/null; echo "-> $?"

# The data of two ranks' files exchanged, which merged is a whole model, too: the manifest knows.
cp -r parts exchanged
header() { head -c $(($(od -An -tu8 -N 8 "$1") + 8)) "$1"; }
data() { tail -c +$(($(od -An -tu8 -N 8 "$1") + 9)) "$1"; }
zero=model-rank-0-part-0.safetensors one=model-rank-1-part-0.safetensors
{ header parts/$zero; data parts/$one; } > exchanged/$zero
{ header parts/$one; data parts/$zero; } > exchanged/$one
shardtool validate exchanged --quick --require-coverage 100 > report; echo "-> $?"
grep -E "V0|^bytes|^fail" report; grep -c "^hashes" report
shardtool validate exchanged --quick --json |
  grep -o '"bytes": {[^[]*\|"not_proved": [^]]*.\|"status": "[a-z]*"'

# A rank that is missing: the headers are the verdict.
rm "$file"
try changed -r "$model"
shardtool validate changed -r "$model" --json > /dev/null; echo "-> $?"

# Errors say why an input cannot be validated.
try "$model"
try gone
try
try parts --ranks 3
sed 's/"model_type": "llama"/"model_type": "novel"/' parts/config.json > novel.json
try parts --model-config novel.json
try parts -r "$model" --engine embedded --require-coverage 100 -q
# Processes that no known launcher started would each be alone.
RANK=0 WORLD_SIZE=2 try parts -r "$model" --engine tcp
