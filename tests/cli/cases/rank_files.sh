# Rank files of FSDP that PyTorch saved: a folder of them is one checkpoint.
saved="$samples/../tests/format/torch/fixtures"
cp -r "$saved/hsdp" saved
mkdir saved/huggingface
echo '{"model_type": "none"}' > saved/huggingface/config.json
shardtool inspect saved --tensors --query name,dtype,shape --format csv
shardtool -q merge saved -o merged
ls merged
shardtool -q diff saved merged; echo "-> $?"
cp -r "$saved/fsdp" of_a_trainer
shardtool inspect of_a_trainer | head -n 1

try() { shardtool "$@"; echo "-> $?"; }
rm saved/model_world_size_4_rank_3.pt saved/model_world_size_4_rank_1.pt
try inspect saved
shardtool check saved | sed 's/ in [0-9.]* s/ in [..] s/'
