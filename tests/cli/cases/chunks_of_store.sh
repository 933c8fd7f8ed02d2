# Chunks of tensors that a mapping fuses are refused, also where the mapping is the manifest's; the help works.
cat > fused.json <<'END'
{"version": 1, "extends": ["preset:llama"], "mesh": [{"axis": "tp", "size": 2}],
 "store": [{"name": "model.layers.<layer>.mlp.gate_up_proj.weight",
            "of": ["model.layers.<layer>.mlp.gate_proj.weight", "model.layers.<layer>.mlp.up_proj.weight"]}]}
END
shardtool -q split "$samples/tiny-llama" -o fused -m fused.json
shardtool reshard fused -o chunks --to-mesh tp=1 --layout dcp; echo "-> $?"
shardtool -q reshard fused -o chunks --to-preset llama --to-mesh tp=1 --layout dcp
