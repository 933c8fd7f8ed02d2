shardtool schema | head -n 4
shardtool schema --json > document
# Those of files that people write are named after them.
for kind in graph profile policy; do shardtool schema $kind | grep title; shardtool schema $kind --json > document; done
