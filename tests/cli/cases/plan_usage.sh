# Errors name the invalid option.
plan() { shardtool plan "$samples/tiny-llama" --tp 2 "$@"; echo "exit $?"; }
plan --budget 1KB --overhead 2KB
plan --budget lots
plan --overhead -1
shardtool plan "$samples/tiny-llama" --tp 2 --profile h100-sxm --overhead 0 --json | grep -o '"overhead_bytes": [0-9]*'
plan --memory-fraction 1.2 --budget 1GB
plan --budget 1GB --memory-fraction 0
plan --memory-fraction 0.9
plan --fail-over-budget
plan --fail-over-budget --exit-zero --budget 1GB
plan --prefix-hit 0.5 --context 64
plan --block-tokens 32
plan --sequence-parallel
plan --html "$samples/tiny-llama/plan.html"
plan --prefix-hit 5e9 --prompt-len 8
plan --price 2,49
plan --what-if 1,x
plan --class router
plan --class 'other=**.x'
shardtool plan "$samples/tiny-llama" --tp 2 --class 'mine=*down_proj*' 2>&1 > /dev/null
plan --kv-dtype bf17
plan --kv-dtype f16 -q
plan --kv-dtype ''
plan --from x
plan --zero 2
plan --virtual-stages 2
plan --train --virtual-stages 2
plan --train --zero 4
plan --train --context 64
plan --detailed-exitcode
plan --node-size 4
plan --train --micro-batch 2
plan --ops --context 64
shardtool plan diff a.json b.json --tp 2; echo "exit $?"
shardtool plan profile --budget 1GB; echo "exit $?"
plan --compare preset:llama -q
plan --compare no-such-preset
plan --to-mesh tp=4 --explain lm_head.weights
plan --to-mesh tp=0
plan --to-mesh dp=65536,tp=2
plan --what-if 70000
plan --price 1e300
plan --batch 2000000000 --context 2000000000
plan --prompt-len 1000 --context 50
# The prompt of an encoder is not in the decoder's cache.
"$golden_model" t5 t5 && shardtool plan t5 --prompt-len 64 --context 16 -q; echo "exit $?"
