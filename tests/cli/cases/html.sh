cp -r "$samples/tiny-llama" model
shardtool split model --tp 2 -o out -q
shardtool plan model --tp 2 --html plan.html -q
# The page of an earlier run is replaced, and nothing else.
shardtool plan out --to-mesh tp=4 --html plan.html | head -n 1
grep -c '"reshard": {' plan.html
echo '<!DOCTYPE html><title>mine</title>' > mine.html
shardtool plan model --tp 4 --html mine.html; cat mine.html
ln -s plan.html link.html
shardtool plan model --tp 4 --html link.html
shardtool plan diff plan.html plan.html --html plan.html
# A place that cannot be written is told before anything is read.
for command in plan inspect check validate 'plan search --profile h100-sxm'; do
  shardtool $command gone --html nodir/page.html; echo "exit $?"
done
shardtool plan out --to-mesh tp=4 -o nodir/plan.json; echo "exit $?"
mkdir folder
shardtool plan model --tp 4 --html folder; echo "exit $?"
shardtool plan model --tp 4 --ops --html ops.html
shardtool plan model --tp 4 --html four.html -q
shardtool plan diff plan.html four.html --html diff.html | tail -n 1
shardtool inspect out --html inspect.html --by dtype
shardtool plan diff plan.html inspect.html; echo "exit $?"
shardtool check out --html check.html
shardtool validate out -r model --html validate.html -q
shardtool validate --demo mlp --html demo.html
shardtool plan search model --profile h100-sxm --devices 1,2 --concurrency 4,16 --html search.html | head -n 1
shardtool plan search model --train --profile h100-sxm --devices 2 --sequence 64 --batch 4 --html train.html | head -n 1
for name in plan diff search train inspect check validate; do
  grep -o '"command": "[a-z_]*", "status": "[a-z]*"' "$name.html"
done
ls -A
