shardtool explain "$samples/tiny-llama" model.layers.1.self_attn.k_proj.weight --tp 4
shardtool explain "$samples/tiny-llama" model.norm.weight --tp 2 --json
# Sections side by side are drawn one by one.
"$golden_model" phi3 phi3
shardtool explain phi3 model.layers.0.self_attn.qkv_proj.weight --tp 2 | tail -n 3
shardtool explain phi3 model.layers.0.mlp.gate_up_proj.weight --tp 2 --json | grep -o '"sections": [^]]*.'
# What fills the last shard are copies of the last row.
cat > repeat.json <<'JSON'
{"version": 1, "mesh": [{"axis": "tp", "size": 3}], "unknown": "replicate",
 "axes": {"rows": {"mesh": "tp", "uneven": "pad", "padding": "repeat_last"}},
 "rules": [{"match": "lm_head.weight", "dims": ["rows", null]}]}
JSON
shardtool explain "$samples/tiny-llama" lm_head.weight -m repeat.json
shardtool explain "$samples/tiny-llama" model.norm.wieght --tp 2
