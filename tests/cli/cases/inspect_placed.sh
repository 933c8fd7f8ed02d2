cp -r "$samples/tiny-llama" model
shardtool inspect model --tp 4 --filter 'model.layers.0.self_attn.*.weight' --by dtype
