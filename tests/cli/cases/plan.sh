# The costs of a layout; the verdict comes first.
shardtool plan "$samples/tiny-llama"
shardtool plan "$samples/tiny-llama" --tp 2 --budget 300KB --context 128 --batch 4
shardtool plan "$samples/tiny-llama" --tp 2 --budget 200KB --what-if 1,3,4 --compare llama
shardtool plan "$samples/tiny-llama" --tp 2 --budget 200KB --fail-over-budget --format csv
# Groups of devices that hold experts of their own have sequences of their own, and each rank its part of the batch.
"$golden_model" mixtral mixtral
shardtool plan mixtral --ep 2 --batch 5 --context 64 | grep '^batch'
shardtool plan mixtral --tp 2 --batch 5 --context 64 | grep -c '^batch'
