# Rules that hold in some layers only: which those are is said; init writes a mapping that split takes.
model=gemma4_text
"$golden_model" $model $model
shardtool explain "$model" model.layers.0.self_attn.k_proj.weight --tp 2
shardtool explain "$model" model.layers.1.self_attn.k_proj.weight --tp 2
shardtool init "$model" --mesh tp=2 -o mapping.json
shardtool -q split "$model" -o a -m mapping.json
shardtool -q split "$model" -o b --tp 2
shardtool diff a b

# The manifest holds the rules and which layers they are of.
for word in where layer_sets; do grep -q "$word" a/manifest.json; echo "$word -> $?"; done

# Two rules of one layer, and a layer that config.json calls what nobody knows.
cat > two.json <<'JSON'
{"version": 1, "unknown": "replicate", "unused_rule": "ignore",
 "layer_sets": {"local": {"list": "layer_types", "in": ["sliding_attention"], "out": ["full_attention"]}},
 "rules": [
   {"id": "local", "match": "model.layers.<n>.self_attn.**", "strategy": "replicate", "where": {"n": "local"}},
   {"id": "any", "match": "model.layers.*.self_attn.q_proj.weight", "strategy": "replicate"}
 ]}
JSON
shardtool explain "$model" model.layers.0.self_attn.q_proj.weight -m two.json --mesh tp=2; echo "-> $?"
sed -i 's/"sliding_attention"/"window"/; s/model.layers.\*/other.*/' two.json
shardtool explain "$model" model.layers.0.self_attn.q_proj.weight -m two.json --mesh tp=2; echo "-> $?"
