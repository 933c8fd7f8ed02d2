# The headers of plain shards say where each begins, for torch; not if a shard is not one box.
keys() { python3 - "$1" << 'END'
import json, struct, sys
with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
print(sorted(header["__metadata__"]))
info = json.loads(header["__metadata__"].get("DCP_SHARDING_INFO", "{}"))
print(info.get("model.layers.1.mlp.down_proj.weight"))
END
}
shardtool -q split "$samples/tiny-llama" -o boxes --tp 2
keys boxes/model-rank-1-part-0.safetensors
cat > mapping.json << 'END'
{
  "version": 1,
  "extends": ["preset:llama"],
  "overrides": [
    {"match": "**.mlp.down_proj.weight", "strategy": {"type": "segmented", "axis": 0, "segments": [16, 48]}}
  ]
}
END
shardtool split "$samples/tiny-llama" -o parts -m mapping.json --tp 2 | sed 's/ in .*//'
keys parts/model-rank-1-part-0.safetensors
shardtool split "$samples/tiny-llama" -o other -m mapping.json --tp 2 --json | python3 -c '
import json, sys
print(json.load(sys.stdin)["plan"]["not_boxes"])'
