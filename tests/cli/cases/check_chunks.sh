# What check says of a broken checkpoint of torch.distributed.checkpoint: a finding per defect.
shardtool -q split "$samples/tiny-llama" -o whole --tp 2 --layout dcp
rm whole/manifest.json
broken() { rm -rf chunks; cp -r whole chunks; }
check() { shardtool check chunks | sed 's/ in [0-9.]* s/ in [..] s/'; }
shardtool check whole --read-data | sed 's/ in [0-9.]* s/ in [..] s/'
broken; rm chunks/__1_0.distcp; check
broken; truncate -s -1 chunks/__1_0.distcp; check
broken; printf 'x' | dd of=chunks/__0_0.distcp bs=1 seek=0 conv=notrunc status=none; check
broken; rm chunks/.metadata; shardtool check chunks; echo "-> $?"
# Entries that are no weights are named; all tensors are carried unless a prefix leaves some out.
saved="$samples/../tests/format/dcp/torch"
shardtool -q merge "$saved" -o all && shardtool inspect all --tensors --query name --format csv
