# The mapping that init writes is one that split takes; nothing is overwritten.
shardtool init "$samples/tiny-llama" --mesh tp=4 -o mapping.json
shardtool -q split "$samples/tiny-llama" -o a -m mapping.json
shardtool -q split "$samples/tiny-llama" -o b --tp 4
shardtool diff a b
shardtool init "$samples/tiny-llama" -o mapping.json; echo "-> $?"
ln -s gone link
shardtool init "$samples/tiny-llama" -o link; echo "-> $?"
shardtool init "$samples/tiny-llama" --json > document; echo "-> $?"

# A model that no preset knows: a rule for every kind of tensors, which says what they are.
mkdir unknown
cp "$samples"/tiny-llama/*.safetensors "$samples"/tiny-llama/*.index.json unknown
echo '{"model_type": "own"}' > unknown/config.json
shardtool init unknown --mesh tp=2 -o own.json; echo "-> $?"
cat own.json
shardtool -q split unknown -o c -m own.json; echo "-> $?"
shardtool init unknown --json > document; echo "-> $?"
