shardtool explain "$samples/tiny-llama" model.layers.1.self_attn.k_proj.weight --tp 4
shardtool explain "$samples/tiny-llama" model.norm.weight --tp 2 --json
# What fills the last shard are copies of the last row.
cat > repeat.json <<'JSON'
{"version": 1, "mesh": [{"axis": "tp", "size": 3}], "unknown": "replicate",
 "axes": {"rows": {"mesh": "tp", "uneven": "pad", "padding": "repeat_last"}},
 "rules": [{"match": "lm_head.weight", "dims": ["rows", null]}]}
JSON
shardtool explain "$samples/tiny-llama" lm_head.weight -m repeat.json
shardtool explain "$samples/tiny-llama" model.norm.wieght --tp 2
