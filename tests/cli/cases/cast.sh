# Floats are cast on the way; what is lost is counted, and diff proves the result.
shardtool split "$samples/tiny-llama" -o wide --tp 2 --dtype f32
shardtool merge wide -o back --dtype bf16
shardtool diff "$samples/tiny-llama" back
shardtool -q split "$samples/tiny-llama" -o half --tp 2 --dtype f16 --json
shardtool diff "$samples/tiny-llama" half --values
shardtool diff "$samples/tiny-llama" half --values --json
shardtool split "$samples/tiny-llama" -o none --tp 2 --dtype bf16 --dry-run
shardtool diff "$samples/tiny-llama" half --values --metadata-only
