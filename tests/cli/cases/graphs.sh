# Graphs are data: listed, shown, extended in a user's file, and run.
shardtool graphs | grep -E "^  (llama|bert) "
shardtool graphs --json > list; grep -c '"name": "llama"' list
shardtool graphs show llama > llama.json; head -n 3 llama.json
shardtool graphs show llama --json > document; wc -l < document
shardtool graphs show lama
shardtool graphs show

# A model type that nobody knows, with a graph that extends a known one.
cp -r "$samples/tiny-llama" novel
sed -i 's/"model_type": "llama"/"model_type": "novel"/' novel/config.json
shardtool -q split novel -o parts --preset llama --tp 2
cat > mine.json << 'END'
{
  "version": 1,
  "family": "novel",
  "extends": "llama",
  "description": "Llama",
  "source": "a paper",
  "model_types": ["novel"]
}
END
try() { shardtool "$@"; echo "-> $?"; }
try validate parts -r novel --graph mine.json -q
try validate parts -r novel -q
try plan novel --preset llama --tp 2 --profile h100-sxm | grep "^forward"
try plan novel --preset llama --tp 2 --profile h100-sxm --graph mine.json | grep -c "^decode"

# An invalid graph is refused with the place.
sed 's/"a paper",/"a paper", "parts": {"mlp_add": [{"op": "add", "in": ["y", "gated"], "out": "x"}]},/' mine.json > odd.json
try validate parts -r novel --graph odd.json -q
sed 's/"extends": "llama"/"extends": "lama"/' mine.json > odd.json
try validate parts -r novel --graph odd.json -q
try validate parts -r novel --graph gone.json -q
try validate --demo mlp --graph mine.json
