# Training state by ZeRO stage, and activations of a layer's backward pass.
for stage in 0 1 2 3; do
  shardtool plan "$samples/tiny-llama" --tp 2 --train --zero $stage --dp 4 | head -1
done
shardtool plan "$samples/tiny-llama" --tp 2 --train --optimizer sgd --sequence 128 --micro-batch 2 \
  --recompute selective --sequence-parallel
# Replicas, and the gradients that they reduce.
shardtool plan "$samples/tiny-llama" --tp 2 --train --dp 4 --profile h100-sxm --price 2
shardtool plan "$samples/tiny-llama" --tp 2 --train --dp 4 --zero 3 | tail -n 4
shardtool plan "$samples/tiny-llama" --tp 2 --train --dp 4 --zero 1 --json | grep -o '"replicas".*"warnings"'
# Replicas in the mesh are not those of ZeRO.
shardtool plan "$samples/tiny-llama" --mesh dp=4,tp=2 --train --zero 3 | head -1
shardtool plan "$samples/tiny-llama" --mesh dp=4,tp=2 --train >plain.txt
# Without --train it changes the collectives of the forward pass.
shardtool plan "$samples/tiny-llama" --tp 2 --prompt-len 64 --sequence-parallel --profile h100-sxm | grep -E "all_reduce|reduce_scatter|all_gather"
