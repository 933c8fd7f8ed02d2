# A short run shows nothing but what was asked for.
shardtool split "$samples/tiny-llama" -o a --tp 2 -q --progress json
shardtool split "$samples/tiny-llama" -o b --tp 2 --progress always > stdout
shardtool split "$samples/tiny-llama" -o c --tp 2 --progress json > stdout
SHARDTOOL_PROGRESS=json shardtool merge c -o d --progress never > stdout
