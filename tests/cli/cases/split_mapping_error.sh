# The place of the mistake, with its line and a caret.
cat > mapping.json <<'EOF'
{
  "version": 1,
  "extends": ["preset:llama"],
  "mesh": [{"axis": "tp", "size": 2}],
  "axes": {"vocab": {"mesh": "tpp"}}
}
EOF
shardtool split "$samples/tiny-llama" -o out -m mapping.json; echo "-> $?"
shardtool split "$samples/tiny-llama" -o out -m mapping.json --json; echo "-> $?"
shardtool split "$samples/tiny-llama" -o out --tp 3; echo "-> $?"
ls -A
