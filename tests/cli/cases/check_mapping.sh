# A mapping is held against the checkpoint: all that is wrong with it, not only the first.
check() { shardtool check "$@"; echo "-> $?"; }
check "$samples/tiny-llama" --tp 3
check "$samples/tiny-llama" --tp 3 --profile vllm -q
cat > mapping.json <<'END'
{
  "version": 1,
  "mesh": [{"axis": "tp", "size": 2}],
  "rules": [
    {"match": "**.weight", "strategy": "replicate"},
    {"match": "model.norm.weight", "strategy": "replicate"},
    {"match": "model.layers.<l>.mlp.up_proj.weigth", "strategy": "replicate"}
  ]
}
END
check "$samples/tiny-llama" -m mapping.json
check "$samples/tiny-llama" -m gone.json
