# Packed weights: held against the packed model, and by value against what its weights are.
model=$packed_models/gptq
shardtool -q split "$model" -o parts --tp 2
shardtool validate parts -r "$model" | grep -E "V[0-2]|coverage|bytes"
shardtool validate parts -r "$model/plain" --values | grep -E "V[0-2]|coverage|bytes"
sed 's/"quant_method": "gptq"/"quant_method": "gptq", "checkpoint_format": "marlin"/' "$model/config.json" > other.json
shardtool validate parts -r "$model" --model-config other.json; echo "-> $?"
