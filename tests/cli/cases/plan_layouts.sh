# The two layouts of an FSDP mapping: parameters at rest, and as they are computed with.
cat > fsdp.json <<'JSON'
{
  "version": 1,
  "extends": ["preset:llama"],
  "mesh": [{"axis": "fsdp", "size": 2}, {"axis": "tp", "size": 2}],
  "layouts": {"param": {"embed": "fsdp"}, "compute": {"embed": null}}
}
JSON
shardtool plan "$samples/tiny-llama" -m fsdp.json --from param --to compute
shardtool plan "$samples/tiny-llama" -m fsdp.json --from compute --to param | head -1
# vLLM pads the vocabulary, and a plan that is applied writes plain files.
shardtool plan "$samples/tiny-llama" --tp 4 | sed -n 1,2p
shardtool plan "$samples/tiny-llama" --tp 4 --layout vllm | sed -n 1,2p
shardtool -q split "$samples/tiny-llama" -o tp2 --tp 2
shardtool plan tp2 --to-mesh tp=4 --layout vllm -o plan.json; echo "exit $?"
# No such layout.
shardtool plan "$samples/tiny-llama" -m fsdp.json --from param --to serve
