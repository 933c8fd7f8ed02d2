shardtool explain "$samples/tiny-llama" model.layers.1.self_attn.k_proj.weight --tp 4
shardtool explain "$samples/tiny-llama" model.norm.weight --tp 2 --json
shardtool explain "$samples/tiny-llama" model.norm.wieght --tp 2
