# FSDP: one mapping names the layout that parameters are stored in and the one to compute with.
mapping=$samples/mappings/llama-fsdp4-tp2.json
for layout in param compute; do
  shardtool -q split "$samples/tiny-llama" -o "$layout" -m "$mapping" --mesh fsdp=2,tp=2 --axes "$layout"
done
shardtool -q reshard param -o reached --to compute
diff -r compute reached && echo same
shardtool -q plan param --to compute -o plan.json
shardtool -q reshard --plan plan.json -o planned
diff -r compute planned && echo same
shardtool plan param --to param --detailed-exitcode -q && echo nothing moves
shardtool reshard param -o refused --to computed
shardtool validate compute --quick

# Parameters are gathered over fsdp before a layer computes: run, priced, and in training.
shardtool validate param --reference "$samples/tiny-llama" --quick | tail -2
shardtool plan "$samples/tiny-llama" -m "$mapping" --axes param --batch 4 --prompt-len 8 --profile h100-sxm | grep -E 'fsdp|gathered'
shardtool plan "$samples/tiny-llama" -m "$mapping" --axes param --train
shardtool plan "$samples/tiny-llama" -m "$mapping" --axes param --train --json > /dev/null
