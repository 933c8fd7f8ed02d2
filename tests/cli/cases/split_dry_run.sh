shardtool split "$samples/tiny-llama" -o out --tp 2 -n
shardtool split "$samples/tiny-llama" -o out --tp 2 -n -q
shardtool split "$samples/tiny-llama" -o out --tp 2 --dry-run --json
ls -A
