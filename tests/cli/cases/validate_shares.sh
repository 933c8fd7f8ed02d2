# Shares of a validation run some layers each; the last one, or finish, gives the verdict on all.
shardtool -q split "$samples/tiny-llama" -o out --tp 2
shardtool validate out -r "$samples/tiny-llama" --share 1/3 -o verdicts; echo "exit $?"
shardtool finish verdicts; echo "exit $?"
shardtool validate out -r "$samples/tiny-llama" --share=0/3 -o verdicts --json
shardtool validate out -r "$samples/tiny-llama" --share 2/3 -o verdicts; echo "exit $?"
shardtool finish verdicts --json
shardtool -q finish verdicts; echo "exit $?"

# Other validations keep away, and so do launches.
shardtool validate out -r "$samples/tiny-llama" --share 0/3 -o verdicts --seed 2; echo "exit $?"
shardtool validate out -r "$samples/tiny-llama" --share 0/2 -o verdicts; echo "exit $?"
shardtool validate out -r "$samples/tiny-llama" --share 0/2
shardtool validate out -r "$samples/tiny-llama" -o verdicts
shardtool validate out -r "$samples/tiny-llama" --share 0/2 -o other --engine tcp

# A wrong bit fails its share and the verdict on all.
printf '\377' | dd of=out/model-rank-1-part-0.safetensors bs=1 seek=9000 conv=notrunc status=none
for share in 0 1 2; do
  shardtool -q validate out -r "$samples/tiny-llama" --share $share/3 -o wrong; echo "exit $?"
done
shardtool -q finish wrong; echo "exit $?"
