shardtool presets
shardtool presets --json > list; grep -c '"name": "llama"' list
shardtool presets show llama > llama.json; head -n 2 llama.json
shardtool presets show llama --json > document; wc -l < document
shardtool presets show lama
