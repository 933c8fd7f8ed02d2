# Files that check writes never replace one of the checkpoint.
shardtool -q split "$samples/tiny-llama" -o out --tp 2
cp out/manifest.json before
ln -s out/model-rank-0-part-0.safetensors link
shardtool check out --output out/manifest.json; echo "-> $?"
shardtool check out --output link; echo "-> $?"
shardtool check manifest:out out/../out --write-baseline out/config.json; echo "-> $?"
shardtool check out/manifest.json --output out/manifest.json; echo "-> $?"
cmp before out/manifest.json
shardtool check out --read-data --output report.txt
