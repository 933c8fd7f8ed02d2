shardtool split "$samples/tiny-llama" -o out --tp 2 --json
