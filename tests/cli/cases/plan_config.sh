# A plan of config.json alone is that of the weights that it describes; nothing else takes it.
mkdir model && cp "$samples/tiny-llama/config.json" model
plan() { shardtool plan "$@" --tp 4 --budget 24GB --context 8192 --profile h100-sxm; }
plan "$samples/tiny-llama" > weights.txt
for location in model model/config.json; do
  plan $location > config.txt && cmp weights.txt config.txt
done
plan "$samples/tiny-llama" --json | grep -c from_config
plan model --json 2> /dev/null | grep -o '"from_config": true'
plan model --format md | grep -c 'no weights are read'
train() { shardtool plan "$@" --tp 2 --train --optimizer sgd --sequence 64 --micro-batch 1; }
train "$samples/tiny-llama" > weights.txt
train model 2> /dev/null | cmp weights.txt
search() { shardtool plan search "$@" --profile h100-sxm --devices 2 --concurrency 4; }
search "$samples/tiny-llama" > weights.txt
search model 2> /dev/null | grep -v '^warning' | cmp weights.txt
search model --json 2> /dev/null | grep -c 'no weights are read'
shardtool plan "$samples/tiny-llama" --tp 2 --ops > weights.txt
shardtool plan model --tp 2 --ops 2> /dev/null | cmp weights.txt

echo "what needs weights"
refused() {
  "$@" 2> err
  echo "exit $?"
  grep -v '^  *=' err
}
refused shardtool plan model --tp 2 --to-mesh tp=4
refused shardtool plan model --tp 2 --emit dtensor
refused shardtool split model --tp 2 -o out

echo "what config.json must say"
change() {
  sed "$1" "$samples/tiny-llama/config.json" > model/config.json
  refused shardtool plan model --tp 2
}
change 's/"torch_dtype"/"type"/'
change 's/"model_type": "llama"/"model_type": "lama"/'
change '1a "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},'
change '/intermediate_size/d' | head -2
