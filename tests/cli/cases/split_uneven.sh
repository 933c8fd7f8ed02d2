# Cuts that do not divide are announced with their sizes, or refused.
cat > mapping.json <<'EOF'
{
  "version": 1,
  "extends": ["preset:llama"],
  "mesh": [{"axis": "tp", "size": 3}],
  "axes": {"heads": null, "kv_heads": null}
}
EOF
shardtool split "$samples/tiny-llama" -o out -m mapping.json
shardtool split "$samples/tiny-llama" -o even -m mapping.json --require-even
status=$?
ls -A
exit $status
