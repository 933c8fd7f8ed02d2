# The mapping that init writes is one that split takes; nothing is overwritten.
shardtool init "$samples/tiny-llama" --mesh tp=4 -o mapping.json
shardtool -q split "$samples/tiny-llama" -o a -m mapping.json
shardtool -q split "$samples/tiny-llama" -o b --tp 4
shardtool diff a b
shardtool init "$samples/tiny-llama" -o mapping.json; echo "-> $?"
ln -s gone link
shardtool init "$samples/tiny-llama" -o link; echo "-> $?"
shardtool init "$samples/tiny-llama" --json > document; echo "-> $?"
