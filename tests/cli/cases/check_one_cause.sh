# One damage is one finding: what follows from it is left out.
cp -r "$samples/tiny-llama" model
truncate -s -5000 model/model-00002-of-00002.safetensors
shardtool check model; echo "-> $?"
rm model/model-00002-of-00002.safetensors
shardtool check model; echo "-> $?"
shardtool split "$samples/tiny-llama" -o out --tp 2 -q
truncate -s -5000 out/model-rank-1-part-0.safetensors
shardtool check out; echo "-> $?"
