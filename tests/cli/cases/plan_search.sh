# The best layout of a server; times are rounded for people and whole in the document.
cp -r "$samples/tiny-llama" model
search() { shardtool plan search model --profile h100-sxm "$@"; }
search --devices 1,2,3 --prompt-len 64 --output-len 32 --concurrency 16
search --devices 2 --tp 2 --prompt-len 64 --output-len 32 --concurrency 1,16 --objective latency --price 2 --json |
  sed 's/\(\.[0-9][0-9]\)[0-9]*/\1/g; s/, "warnings.*//'
# What the move from today's layout takes.
shardtool split model --tp 2 -o today -q > /dev/null
search --devices 2,4 --prompt-len 64 --output-len 32 --concurrency 16 --from today
search --devices 2 --tp 2 --prompt-len 64 --output-len 32 --concurrency 16 --from today --json |
  sed 's/.*"move": //; s/, "price.*//; s/\(\.[0-9][0-9]\)[0-9]*/\1/g; s/}].*/}/'
search --devices 2 --concurrency 16 --from model
# The same as a comment of a pull request.
search --devices 1,2,3 --prompt-len 64 --output-len 32 --concurrency 1,16 --format md
search --devices 1 --prompt-len 64 --output-len 32 --concurrency 16 --tpot 0.001 --exit-zero --format md
# A limit that nothing keeps is a finding.
search --devices 1 --prompt-len 64 --output-len 32 --concurrency 16 --tpot 0.001
echo $?
# Fewer sequences at once, where all that fit would break the limit of TPOT.
search --devices 1 --prompt-len 64 --output-len 32 --concurrency 64 --tpot 0.5
search --devices 1 --prompt-len 64 --output-len 32 --concurrency 64 --tpot 0.5 --json | grep -o '"max_num_seqs": [0-9]*'
search --devices 1 --prompt-len 64 --output-len 32 --concurrency 64 --tpot 0.5 --html capped.html > /dev/null
grep -o 'tp=1, at most [0-9]* at once' capped.html | sort -u
# An answer of one token has no later one.
search --devices 1 --concurrency 4 --output-len 1 --objective goodput --tpot 20
search --devices 1 --concurrency 4 --output-len 1 --objective goodput --ttft 20 --json | grep -o '"status": "[a-z]*"'
search --devices 1 --concurrency 4 --output-len 1
search --devices 1 --concurrency 4 --output-len 1 --json | grep -o '"tpot_ms": null, .*"tpot": null'
# An open load, whose prompts the cache has in part; a layout that cannot answer it.
search --devices 1,2 --prompt-len 64 --output-len 32 --request-rate 400 --prefix-hit 0.75
search --devices 1 --prompt-len 64 --output-len 32 --request-rate 400 --json |
  sed 's/\(\.[0-9][0-9]\)[0-9]*/\1/g; s/, "warnings.*//'
search --devices 1 --prompt-len 64 --output-len 32 --request-rate 1e5 --budget 2MB --overhead 0
search --devices 1 --request-rate 400 --concurrency 4
search --devices 1 --concurrency 4 --prefix-hit 1
# The layout that is left when a device is lost.
search --devices 2 --prompt-len 64 --output-len 32 --concurrency 16 --survive 1
search --devices 2 --tp 2 --prompt-len 64 --output-len 32 --concurrency 16 --survive 1 --format md
search --devices 1,2 --prompt-len 64 --output-len 32 --concurrency 16 --survive 1 --json | grep -o '"fallback": {[^}]*}'
# The cost of memory.
search --devices 1,2 --prompt-len 64 --output-len 32 --concurrency 64 --budget 1MB --overhead 0
# The weights as split would cast them.
search --devices 1 --prompt-len 64 --output-len 32 --concurrency 16 --dtype bf16,f32
search --devices 1 --prompt-len 64 --output-len 32 --concurrency 16 --dtype f32 --json | grep -o '"source": "model", "dtype": "[A-Z0-9]*"'
search --devices 1 --concurrency 4 --dtype fp8
# Experts as whole tensors of the devices of tp.
"$golden_model" mixtral mixtral
shardtool explain mixtral model.layers.0.block_sparse_moe.experts.3.w1.weight --tp 2 --expert-parallel
shardtool plan model --tp 2 --concurrency 4
shardtool plan search model
shardtool plan search model --profile h100-sxm --devices 2 --concurrency 4 --mesh tp=2
# Flags that exclude every layout, each for another reason; budgets and types that are none.
search --devices 1,2 --concurrency 4 --tp 3
search --devices 64 --concurrency 4 --pp 64
search --devices 2 --concurrency 4 --expert-parallel
search --devices 1 --concurrency 4 --memory-fraction 1.5
search --devices 1 --concurrency 4 --memory-fraction 0
search --devices 1 --concurrency 4 --memory-fraction 0.001
search --devices 1 --concurrency 4 --kv-dtype bf16,
search --devices 1 --concurrency 4 --max-price 3
search --devices 1 --concurrency 4 --objective cost --price 0
shardtool plan search model mixtral --profile h100-sxm --devices 1 --concurrency 4
shardtool plan search -h
