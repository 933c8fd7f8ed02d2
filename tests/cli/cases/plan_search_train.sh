# The best way to train; times are rounded for people and whole in the document.
cp -r "$samples/tiny-llama" model
train() { shardtool plan search model --train --profile h100-sxm "$@"; }
train --devices 2,4 --sequence 64 --batch 16 --micro-batch 1,2
# A budget under which some layers of a stage must compute again.
train --devices 2 --pp 2 --sequence 128 --batch 8 --budget 3500KiB
train --devices 2 --pp 2 --sequence 128 --batch 8 --budget 3500KiB --format md
train --devices 1 --sequence 64 --batch 4 --recompute none,full --json |
  sed 's/\(\.[0-9][0-9]\)[0-9]*/\1/g; s/, "warnings.*//'
# Experts over groups of devices with sequences of their own.
"$golden_model" mixtral mixtral
shardtool plan search mixtral --train --profile h100-sxm --devices 4 --sequence 64 --batch 8 --html experts.html
grep -o 'ep is the number of groups[^<]*' experts.html
shardtool plan search mixtral --train --profile h100-sxm --devices 4 --ep 4 --zero 1 --sequence 64 --batch 6
# Nothing fits: a finding.
train --devices 1 --sequence 64 --batch 4 --budget 1MiB
echo $?
# The sample's two layers are too few for two virtual stages on each of two ranks.
train --devices 2 --pp 2 --sequence 64 --batch 4 --virtual-stages 1,2 | grep excluded
train --devices 2 --pp 1 --sequence 64 --batch 4 --virtual-stages 2
train --devices 3 --sequence 64 --batch 4 --tp 2
train --devices 1 --sequence 64 --batch 4 --memory-fraction 2
train --devices 2 --sequence 64
train --devices 2 --sequence 64 --batch 4 --recompute all
train --devices 2 --sequence 64 --batch 4 --tpot 3
shardtool plan search model --profile h100-sxm --devices 2 --concurrency 4 --zero 1
