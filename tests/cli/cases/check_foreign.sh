# Shards without a manifest: the mapping says what they are parts of.
check() { shardtool check "$@"; echo "-> $?"; }
shardtool -q split "$samples/tiny-llama" -o parts --tp 4
rm parts/manifest.json
check parts
check parts --tp 4 --read-data
check parts --tp 2
mkdir ranks
for r in 0 1 2 3; do
  mkdir ranks/rank_$r
  mv parts/model-rank-$r-part-0.safetensors ranks/rank_$r/model.safetensors
done
cp "$samples/tiny-llama/config.json" ranks/rank_0/
check ranks --tp 4
rm -r ranks/rank_2
check ranks --tp 4
