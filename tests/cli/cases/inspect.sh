cp -r "$samples/tiny-llama" model
shardtool inspect model
shardtool inspect model --by dtype -q
