shardtool -q split "$samples/tiny-llama" -o parts --tp 4
shardtool merge parts -o full
shardtool diff "$samples/tiny-llama" full
shardtool merge parts -o first --replicas first --json
