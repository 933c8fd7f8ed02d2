shardtool -q split "$samples/tiny-llama" -o out --mesh tp=2
