# Forms of files that engines load: listed, shown, written, and refused with the reason.
shardtool layouts
shardtool layouts show vllm@0.32 | head -n 3
shardtool layouts show vllm --json > document; grep -c '"layout": "vllm"' document
shardtool layouts show vlm
shardtool layouts show plain
# Every name of the list is shown.
for name in $(shardtool layouts | sed -n 's/^\([^ ]*\)  .*/\1/p'); do
  shardtool layouts show "$name" --json > document || echo "cannot show $name"
done
diff <(shardtool layouts list) <(shardtool layouts) && echo "list: the same"
shardtool layouts list vllm
cp -r "$samples/tiny-llama" model
shardtool -q split model -o parts --tp 2 --layout vllm
ls parts
shardtool -q merge parts -o merged
shardtool -q diff model merged; echo "-> $?"
shardtool -q reshard parts -o plain --to-mesh tp=2
shardtool -q split model -o same --tp 2
diff -r plain same && echo "the plain layout again"
shardtool check parts --read-data | sed 's/ in [0-9.]* s/ in [..] s/'

try() { shardtool "$@"; echo "-> $?"; }
try split model -o other --mesh dp=2,tp=2 --layout vllm
try split model -o other --tp 2 --layout vlm
try split model -o other --tp 2 --layout megatron
try merge parts -o other --layout vllm
sed -i 's/"model_type": "llama"/"model_type": "novel"/' model/config.json
try split model -o other --preset llama --tp 2 --layout vllm
