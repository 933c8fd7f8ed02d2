# Quantised weights become floats on the way; diff proves the result.
packed="$packed_models/gptq"
shardtool merge "$packed" -o plain --dequantize
shardtool diff "$packed" plain --values
shardtool -q split "$packed" -o parts --tp 2
shardtool -q merge parts -o again --dequantize
shardtool diff plain again
shardtool split "$packed" -o floats --tp 2 --dequantize --dtype f32 --json
shardtool diff parts floats --values --json
shardtool merge "$packed" -o none --dtype bf16
shardtool merge "$samples/tiny-llama" -o none --dequantize
