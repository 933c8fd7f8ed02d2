# The documents are held against the schema; classes of one's own, and a price.
cp -r "$samples/tiny-llama" model
shardtool plan model --tp 2 --json --budget 300KB --class 'down=**.down_proj.weight' --price 2.50 \
  --what-if 3,4 --context 64
shardtool plan model --to-mesh tp=2 --json --explain model.norm.weight | sed 's/"tensors": .*//'
