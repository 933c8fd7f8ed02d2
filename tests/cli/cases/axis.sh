# One axis without a checkpoint, and a bare axis mapping as Haliax has it.
cat > mapping.json <<'JSON'
{"version": 1, "mesh": [{"axis": "replica", "size": 2}, {"axis": "data", "size": 2}],
 "axes": {"batch": ["replica", "data"], "vocab": {"mesh": "data", "uneven": "pad"}, "embed": {"size": 8}},
 "layouts": {"whole": {"batch": null}}, "unknown": "replicate"}
JSON
shardtool axis batch --size 10 -m mapping.json
shardtool axis vocab --size 7 -m mapping.json --mesh replica=1,data=4
shardtool axis embed -m mapping.json
shardtool axis batch --size 10 -m mapping.json --axes whole --json
shardtool axis batch -m mapping.json
sed 's/"uneven": "pad"/&, "pad_to": 3/' mapping.json > padded.json
shardtool axis vocab --size 10 -m padded.json --mesh replica=1,data=4
sed 's/"uneven": "pad"/"uneven": "error"/' mapping.json > even.json
shardtool axis vocab --size 5 -m even.json; echo "exit $?"
shardtool axis batch --size 10 -m mapping.json --require-even; echo "exit $?"
shardtool axis batch --size 3 -m mapping.json; echo "exit $?"
shardtool axis batch --size 3 -m mapping.json --allow-empty-shards | tail -4
shardtool axis bach --size 10 -m mapping.json
shardtool axis batch --size 10

echo '{"mlp": ["data", "model"], "heads": "model", "kv_heads": "model"}' > axes.json
shardtool -q split "$samples/tiny-llama" -o parts --mesh data=2,model=2 --axis-mapping axes.json
shardtool explain parts model.layers.0.mlp.up_proj.weight | head -5
shardtool plan parts --to-mesh data=2,model=2 -q --detailed-exitcode; echo "exit $?"
shardtool -q split "$samples/tiny-llama" -o none --mesh data=2 --axis-mapping axes.json --axes param
shardtool -q split "$samples/tiny-llama" -o none --mesh data=2 --axis-mapping mapping.json
