# Everything that is wrong is printed, the worst first, with what to do; 1 is the exit status.
check() { shardtool check "$@"; echo "-> $?"; }
check "$samples/tiny-llama"
cp -r "$samples/tiny-llama" model
sed -i 's/"vocab_size": 1000/"vocab_size": 1001/; s/"head_dim": 8/"head_dim": 16/' model/config.json
touch model/pytorch_model.bin
check model
check model -q
check model --ignore ST0403,ST0401 --fail-on warning
check model --fail-on never
check model --exit-zero -q
shardtool -q split "$samples/tiny-llama" -o parts --tp 2
check parts --read-data
printf '\001' | dd of=parts/model-rank-1-part-0.safetensors bs=1 conv=notrunc status=none \
  seek=$(($(stat -c %s parts/model-rank-1-part-0.safetensors) - 1))
check parts
check parts --read-data
check parts --read-data-subset 50%
truncate -s -1 parts/model-rank-0-part-0.safetensors
check parts
check parts --read-data
