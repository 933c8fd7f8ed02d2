# What the help of an error says gets past the error: each line has the error, its help, and the exit status of what it
# advises. Errors of mappings are in tests/mapping/advice_test.cc.
here=$(pwd)
# refused COMMAND...: runs what is refused; prints its code and its help.
refused() {
  "$@" > out 2> err && echo "not refused: $*"
  grep -E '^error|help: ' err | sed -E "s:$here:HERE:g; s/^error\[(E[0-9]*)\].*/\1/; s/^ *help: /  /"
}
# advised COMMAND...: runs what was advised; prints its exit status.
advised() {
  "$@" > out 2> err; echo "  -> $?"
}
refused shardtool splt "$samples/tiny-llama" -o a --tp 2
advised shardtool split "$samples/tiny-llama" -o a --tp 2
refused shardtool split "$samples/tiny-llama" -o b --tp 2 --rank 1 --ranks 0
advised shardtool split "$samples/tiny-llama" -o b --tp 2 --rank 1
refused shardtool split "$samples/tiny-llama" -o a --tp 4
advised shardtool split "$samples/tiny-llama" -o a --tp 4 --force
refused shardtool split "$samples/tiny-llama" -o deep/er --tp 2
mkdir -p deep
advised shardtool split "$samples/tiny-llama" -o deep/er --tp 2
refused shardtool merge a -o a/inside
advised shardtool merge a -o beside
ln -s a link
refused shardtool merge beside -o link --force
shardtool -q split "$samples/tiny-llama" -o c --tp 2 --share 0/2 > out
refused shardtool finish c
refused shardtool split "$samples/tiny-llama" -o c --tp 4 --share 1/2
advised shardtool split "$samples/tiny-llama" -o c --tp 2 --share 1/2
shardtool -q split "$samples/tiny-llama" -o d --tp 2 --share 0/2 > out
refused shardtool split "$samples/tiny-llama" -o d --tp 4 --share 1/2
advised shardtool resume --discard "$here/d"
refused shardtool resume --discard d
advised shardtool resume --list "$here"
refused shardtool resume .
advised shardtool resume --list .
refused shardtool merge b -o whole
advised shardtool merge a -o whole
shardtool -q split "$samples/tiny-llama" -o b0 --tp 2 --rank 0 > out
advised shardtool merge b0 b -o halves
refused shardtool merge a/model-rank-0-part-0.safetensors -o part
refused shardtool plan a/model-rank-0-part-0.safetensors --tp 2
advised shardtool plan a --to-mesh tp=2
refused shardtool merge meta:a -o same
advised shardtool merge a -o same
refused shardtool merge "meta:$samples/tiny-llama" -o of_meta
cp -r a bare && rm bare/manifest.json
refused shardtool merge vllm:bare -o of_vllm
refused shardtool merge deepsek:bare -o misspelt
refused shardtool merge deepseek:bare meta:bare -o mixed
refused shardtool axis heads --preset llama --tp 4 --size 8
advised shardtool axis heads --preset llama --tp 4 --size 8 --model-config "$samples/tiny-llama/config.json"
refused shardtool split "$samples/tiny-llama" -o i --tp 5 --layout vllm --allow-empty-shards
advised shardtool split "$samples/tiny-llama" -o i --tp 4 --layout vllm
refused shardtool split "$samples/tiny-llama" -o j --tp 16 --set axes.kv_heads.small=gather
advised shardtool split "$samples/tiny-llama" -o j --tp 8 --set axes.kv_heads.small=gather
refused shardtool validate "$samples/tiny-llama"
advised shardtool validate a -r "$samples/tiny-llama"
refused shardtool plan "$samples/tiny-llama" --tp 2 --profile h100
head -c 2000 "$samples/tiny-llama/model-00001-of-00002.safetensors" > short.safetensors
refused shardtool inspect short.safetensors
cp "$samples/tiny-llama/model-00001-of-00002.safetensors" short.safetensors
advised shardtool inspect short.safetensors
refused shardtool split "$packed_models/awq" -o floats --tp 2 --dtype bf16
advised shardtool split "$packed_models/awq" -o floats --tp 2 --dtype bf16 --dequantize
advised shardtool split "$packed_models/awq" -o packed --tp 2
cp -r a moved
mv moved/model-rank-0-part-0.safetensors elsewhere
ln -s ../elsewhere moved/model-rank-0-part-0.safetensors
refused shardtool merge moved -o m1
cp --remove-destination elsewhere moved/model-rank-0-part-0.safetensors
advised shardtool merge moved -o m1
shardtool -q plan a --to-mesh tp=2 -o plan.json > out
printf x | dd of=a/model-rank-1-part-0.safetensors bs=1 seek=5000 conv=notrunc 2> out
refused shardtool merge a -o m2
advised shardtool split "$samples/tiny-llama" -o a --tp 4 --force
advised shardtool merge a -o m2
refused shardtool plan diff plan.json a/config.json
shardtool plan a --to-mesh tp=2 --json > other.json
advised shardtool plan diff plan.json other.json
(flock -x 9; refused shardtool split "$samples/tiny-llama" -o f --tp 2) 9> .f.shardtool.lock
advised shardtool split "$samples/tiny-llama" -o f --tp 2
export OMPI_COMM_WORLD_SIZE=99999999 OMPI_COMM_WORLD_RANK=0
refused shardtool split "$samples/tiny-llama" -o g --tp 2
unset OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK
advised shardtool split "$samples/tiny-llama" -o g --tp 2
shardtool -q plan f --to-mesh tp=4 -o plan_f.json > out
shardtool -q split "$samples/tiny-llama" -o f --tp 4 --force > out
refused shardtool reshard f --plan plan_f.json -o h
rm plan_f.json
shardtool -q plan f --to-mesh tp=8 -o plan_f.json > out
advised shardtool reshard f --plan plan_f.json -o h
exchange() { mv a/model-rank-0-part-0.safetensors x; mv a/model-rank-1-part-0.safetensors a/model-rank-0-part-0.safetensors; mv x a/model-rank-1-part-0.safetensors; }
exchange
refused shardtool merge a -o m3
exchange
advised shardtool merge a -o m3
refused shardtool explain E0210 E0211
advised shardtool explain E0210
