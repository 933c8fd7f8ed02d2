# Layouts and reshards as data that other programs take.
cp -r "$samples/tiny-llama" model
shardtool plan model --mesh dp=2,tp=2 --emit dtensor | head -40
shardtool split model --tp 2 -o tp2 -q > /dev/null
shardtool plan tp2 --to-mesh dp=2,tp=2 --emit nccl-m2n | head -60
shardtool plan model --mesh pp=2,tp=2 --emit mooncake | grep -E '_id": "sha256|"kind"' | sort | uniq -c
shardtool plan search model --profile h100-sxm --devices 2 --tp 2 --concurrency 4 --emit dtensor | grep -c Shard
# What a program cannot express is refused by name.
shardtool plan model --tp 4 --emit dtensor
shardtool plan model --tp 4 --emit mooncake
shardtool plan model --mesh x=2 --emit mooncake
shardtool plan model --tp 2 --emit nccl-m2n
shardtool plan model --tp 2 --emit dtensor --json
echo $?
