# Checkpoints of torch.distributed.checkpoint: written, read, and one that PyTorch saved.
cp -r "$samples/tiny-llama" model
shardtool -q split model -o chunks --tp 2 --layout dcp
ls -A chunks
shardtool inspect chunks | head -n 2
shardtool -q merge chunks -o merged
shardtool -q diff model merged; echo "-> $?"
shardtool check chunks --read-data | sed 's/ in [0-9.]* s/ in [..] s/'
rm chunks/manifest.json
shardtool -q reshard chunks -o plain --to-mesh tp=2
shardtool -q split model -o same --tp 2
cmp plain/model-rank-1-part-0.safetensors same/model-rank-1-part-0.safetensors && echo "the plain shards"
shardtool -q validate plain --reference chunks --quick > report; echo "-> $?"
saved="$samples/../tests/format/dcp/torch"
shardtool inspect "$saved" --tensors --query name,dtype,shape --format csv
shardtool inspect "$saved#model" --tensors --query name --format csv
shardtool -q inspect "$saved" --tensors 2> warnings | tail -n 2
shardtool inspect "$saved" --json | grep -o '"others": [^]]*]'

try() { shardtool "$@"; echo "-> $?"; }
try split model -o other --tp 2 --layout dcp --rank 1
try inspect "$saved#optim"
truncate -s -1 chunks/__1_0.distcp
try inspect chunks
try inspect chunks/__0_0.distcp
