shardtool presets
shardtool presets --json > list; grep -c '"name": "llama"' list
grep -o '"families": \[.*"quantization": \["gptq/desc_act"\]' list | wc -l
shardtool presets show fp8_block | grep -c weight_scale_inv
shardtool presets show llama > llama.json; head -n 2 llama.json
shardtool presets show llama --json > document; wc -l < document
shardtool presets show lama
