# explain uses the mesh of an output folder's manifest.
shardtool -q split "$samples/tiny-llama" -o tp2 --tp 2
shardtool explain tp2 model.layers.1.self_attn.k_proj.weight
shardtool explain tp2 model.layers.1.self_attn.k_proj.weight --tp 4 | head -3
# Files have no mesh of their own.
shardtool explain "$samples/tiny-llama" model.norm.weight
