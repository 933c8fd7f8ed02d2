# Quantised weights become floats on the way; diff proves the result.
packed="$packed_models/gptq"
shardtool merge "$packed" -o plain --dequantize
shardtool diff "$packed" plain --values
shardtool -q split "$packed" -o parts --tp 2
shardtool -q merge parts -o again --dequantize
shardtool diff plain again
shardtool split "$packed" -o floats --tp 2 --dequantize --dtype f32 --json
shardtool diff parts floats --values --json
# Two FP8 matrices with a scale of activations each, which no weight needs.
fp8=
for at in 0 12; do
  name=$([ $at = 0 ] && echo a || echo b)
  fp8+="\"$name.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2],\"data_offsets\":[$at,$((at + 4))]},"
  fp8+="\"$name.weight_scale\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[$((at + 4)),$((at + 8))]},"
  fp8+="\"$name.input_scale\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[$((at + 8)),$((at + 12))]},"
done
fp8="{${fp8%,}}"
mkdir static
{
  printf "\\x$(printf %02x $((${#fp8} % 256)))\\x$(printf %02x $((${#fp8} / 256)))"
  printf '\0\0\0\0\0\0%s' "$fp8"
  for _ in a b; do printf '8888\0\0\200\077\0\0\200\077'; done
} > static/model.safetensors
echo '{"quantization_config": {"quant_method": "fp8", "activation_scheme": "static"}}' > static/config.json
shardtool merge static -o of_static --dequantize
shardtool merge "$packed" -o none --dtype bf16
shardtool merge "$samples/tiny-llama" -o none --dequantize
