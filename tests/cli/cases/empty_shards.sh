# 8 experts on 16 devices: later commands take the shards as they are, also from a version that did not record the flag.
"$golden_model" mixtral mixtral
shardtool -q split mixtral -o refused --mesh ep=16
shardtool -q split mixtral -o parts --mesh ep=16 --allow-empty-shards
shardtool validate parts --quick | tail -1
shardtool -q reshard parts -o again --to-mesh ep=16
diff -r parts again && echo same
sed -i '/"allow_empty_shards"/d' parts/manifest.json
shardtool validate parts --quick | tail -1
shardtool -q merge parts -o merged
shardtool diff merged mixtral
