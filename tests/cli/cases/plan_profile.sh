# Hardware profiles: what is known of them, and what a forward pass costs on one.
shardtool plan profile | head -4
shardtool plan profile show l4
shardtool plan profile show l5
shardtool plan profile burn
shardtool plan "$samples/tiny-llama" --tp 2 --profile h100-sxm --prompt-len 64 --batch 4
shardtool plan "$samples/tiny-llama" --profile a100-80-sxm --what-if 1,2
echo '{"version": 1, "name": "mine"}' > mine.json
shardtool plan "$samples/tiny-llama" --profile mine.json
shardtool plan "$samples/tiny-llama" --tp 2 --profile l4 --json > plan.json
shardtool plan profile --json > profiles.json
shardtool plan profile show l4 --json > profile.json
