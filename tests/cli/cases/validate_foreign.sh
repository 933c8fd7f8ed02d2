# Shards of a tool that leaves no manifest: a mapping and the whole model say what they are parts of.
model=$samples/tiny-llama
try() { shardtool validate "$@"; echo "-> $?"; }
shardtool -q init "$model" --mesh tp=4 -o four.json
shardtool -q split "$model" -o parts -m four.json
rm parts/manifest.json parts/config.json
try parts -m four.json -r "$model"
shardtool validate parts -m four.json -r "$model" --json > /dev/null; echo "-> $?"

# Folders of ranks, of which one holds another one's part.
for r in 0 1 2 3; do
  mkdir -p ranks/rank_$r
  cp parts/model-rank-$r-part-0.safetensors ranks/rank_$r/model.safetensors
done
try ranks -m four.json -r "$model" -q
cp ranks/rank_1/model.safetensors ranks/rank_3/model.safetensors
shardtool validate ranks -m four.json -r "$model" --quick > report; echo "-> $?"
grep -E "^fault|^ {9}[^ ]|V[01]" report | head -4

# Shards and mapping do not fit: the headers are the verdict.
shardtool -q init "$model" --mesh tp=2 -o two.json
try parts -m two.json -r "$model" --quick
rm parts/model-rank-2-part-0.safetensors
try parts -m four.json -r "$model" --quick

# Errors about missing options.
try parts -r "$model"
try parts -m four.json
