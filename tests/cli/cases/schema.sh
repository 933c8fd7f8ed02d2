shardtool schema | head -n 4
shardtool schema --json > document
