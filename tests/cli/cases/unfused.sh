# A mapping whose rules of "read" take fused tensors apart, and one whose rules of "store" put them together again.
"$golden_model" phi3 phi3 > out
mapping=$samples/mappings/phi3-as-llama-tp2.json
shardtool inspect phi3 -m "$mapping" --filter '**.layers.0.**proj.weight' --query name,shape,rule
shardtool explain phi3 model.layers.1.self_attn.k_proj.weight -m "$mapping" | head -2
shardtool explain phi3 model.layers.1.mlp.up_proj.weight -m "$mapping" --json | grep -o '"part_of": {[^}]*}'
shardtool explain phi3 model.norm.weight -m "$mapping" --json | grep -c '"part_of"'
shardtool -q split phi3 -o parts -m "$mapping"
shardtool diff phi3 parts
shardtool -q merge parts -o llama
shardtool inspect llama --filter '**.layers.1.**proj.weight' --query name,shape
cat > fuse.json <<'EOF'
{"version": 1, "extends": ["preset:llama"], "mesh": [{"axis": "tp", "size": 1}],
 "store": [{"name": "**.qkv_proj.weight", "of": ["**.q_proj.weight", "**.k_proj.weight", "**.v_proj.weight"]},
           {"name": "**.gate_up_proj.weight", "of": ["**.gate_proj.weight", "**.up_proj.weight"]}]}
EOF
shardtool -q split llama -o fused -m fuse.json
rm fused/manifest.json
shardtool diff phi3 fused
# As a Llama, with its config.json: the shards compute what the fused tensors do.
sed 's/phi3/llama/; s/Phi3ForCausalLM/LlamaForCausalLM/; s/"partial_rotary_factor":0.5,//' phi3/config.json > llama.json
shardtool -q split phi3 -o as_llama -m "$mapping" --model-config llama.json
shardtool validate as_llama -r phi3 | grep -o '^pass: [^,]* computes'
