# Ranks written apart, merged together.
shardtool -q split "$samples/tiny-llama" -o node0 --tp 4 --ranks 0-1
shardtool -q split "$samples/tiny-llama" -o node1 --tp 4 --ranks 2,3
shardtool -q merge node0 node1 -o full
shardtool diff "$samples/tiny-llama" full
