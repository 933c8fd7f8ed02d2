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
shardtool plan "$samples/tiny-llama" -m fsdp.json --from param --to serve
