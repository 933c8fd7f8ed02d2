# Errors, warnings and exit statuses that tell the user what to do next.
try() { shardtool "$@"; echo "-> $?"; }
shardtool -q split "$samples/tiny-llama" -o out --tp 2 > /dev/null

# A path that cannot be read is told whatever else is asked.
try -q check out gone --exit-zero
try -q check out gone --fail-on never

# A mapping says for which models it is, and which tensors it names.
mapping() { echo "{\"version\": 1, \"extends\": [\"preset:llama\"], $1}" > m.json; }
mapping '"when": {"model_type": ["gpt2"], "config": {"hidden_size": [1]}}'
try split "$samples/tiny-llama" -m m.json -o none --tp 2 --dry-run
mapping '"drop": ["nothing.**"], "store": [{"name": "a.<layer>", "of": "b.<layer>"}], "tied": [["embed", "head"]]'
try split "$samples/tiny-llama" -m m.json -o none --tp 2 --dry-run
mapping '"overrides": [{"match": "model.layers.<layer>.mlp.up_proj.weight", "where": {"layer": {"list": "kinds", "in": ["a"], "out": ["b"]}}, "strategy": "replicate"}]'
cp -r "$samples/tiny-llama" kinds
sed -i 's/^{/{"kinds": ["b", "b"],/' kinds/config.json
try split kinds -m m.json -o none --tp 2 --dry-run
mapping '"companions": [{"of": "**.weight", "is": "**.scale", "kind": "block_scale"}]'
try split "$samples/tiny-llama" -m m.json -o none --tp 2 --dry-run

# Other advice.
try split "$samples/tiny-llama" -o hf://org/name --tp 2
try reshard out --mesh tp=4 -o none
try merge out -o none --layout vllm
try inspect out --set axes.vocab=null | grep -E "mesh|->"
try --color always nothing
echo '{"version": 1, "family": "mine", "extends": "llama", "description": "d", "source": "s", "model_types": [], "requires": {"hidden_size": [1]}}' > g.json
try validate out -r "$samples/tiny-llama" --graph g.json
try -q plan search "$samples/tiny-llama" --profile h100-sxm --devices 1 --concurrency 1

# Shards that an engine loads become plain ones unless --layout says otherwise.
shardtool -q split "$samples/tiny-llama" -o vllm2 --tp 2 --layout vllm > /dev/null
shardtool reshard vllm2 --tp 4 -o plain4 > /dev/null
shardtool reshard vllm2 --tp 4 -o vllm4 --layout vllm > /dev/null
