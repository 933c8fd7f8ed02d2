# A model that no preset and no graph knows: init, split, graphs init and validate, without an edit.
mkdir own
cp "$samples"/tiny-llama/*.safetensors "$samples"/tiny-llama/*.index.json own
echo '{"model_type": "own", "n_heads": 8, "n_kv_heads": 2, "dim": 64, "vocab": 1000}' > own/config.json
shardtool init own -o own.json
grep self_attn.k_proj own.json
shardtool -q split own -o parts -m own.json
shardtool graphs init own > graph.json
head -n 3 graph.json
shardtool validate parts -r own --graph graph.json | grep -E "^(coverage|pass)"

# A wrong rule is a warning of split and a finding of check, with the line and the rule to write.
mkdir ci
sed 's/"dims":\["kv_heads\*head_dim",null\]/"strategy":{"type":"head_aware_rowwise","num_heads":8,"head_dim":2}/' own.json > ci/bad.json
shardtool split own -o wrong -m ci/bad.json --dry-run > /dev/null
shardtool check own -m ci/bad.json; echo "-> $?"

# An error in a mapping of another folder shows its path and line.
sed '$d' own.json > ci/cut.json; echo "  , }" >> ci/cut.json
shardtool split own -o wrong -m ci/cut.json; echo "-> $?"
sed 's/self_attn.q_proj/attention.q_proj/' own.json > ci/typo.json
shardtool split own -o wrong -m ci/typo.json; echo "-> $?"

# The graph as a document, and without a checkpoint.
shardtool graphs init own --json | grep -c '"graph"'
shardtool graphs init; echo "-> $?"
