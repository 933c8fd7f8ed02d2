cp -r "$samples/tiny-llama" model
shardtool inspect model --filter model.norm.weight --json
shardtool inspect model --filter lm_head.weight --tp 2 --json
shardtool inspect model --format json > a
"$program" inspect model --json > b
cmp a b
