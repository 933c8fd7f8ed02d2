# Ranks written apart, merged together.
shardtool -q split "$samples/tiny-llama" -o node0 --tp 4 --ranks 0-1
shardtool -q split "$samples/tiny-llama" -o node1 --tp 4 --ranks 2,3
shardtool -q merge node0 node1 -o full
shardtool diff "$samples/tiny-llama" full
# Stages of a pipeline: each folder has tensors that the other lacks.
shardtool -q split "$samples/tiny-llama" -o stage0 --pp 2 --rank 0
shardtool -q split "$samples/tiny-llama" -o stage1 --pp 2 --rank 1
shardtool -q merge stage0 stage1 -o all
shardtool diff "$samples/tiny-llama" all
# A folder left from another checkpoint.
shardtool -q merge all -o single --max-file-size 1M
rm single/manifest.json
shardtool -q split single -o other1 --pp 2 --rank 1
shardtool -q merge stage0 other1 -o mixed; echo "-> $?"
shardtool check stage0 other1; echo "-> $?"
# A folder that is missing.
shardtool -q merge stage0 -o half; echo "-> $?"
