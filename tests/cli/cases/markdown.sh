# Comments for pull requests: the verdict, then the tables that a reviewer needs.
cp -r "$samples/tiny-llama" model && model=model
work="--context 64 --batch 4 --prompt-len 16 --profile h100-sxm"
shardtool plan "$model" --tp 2 --budget 1MB $work --format md
shardtool plan "$model" --tp 2 --budget 100kB --format md --exit-zero | head -4
shardtool plan "$model" --tp 2 --to-mesh tp=4 --format md | head -20

# A difference begins with both verdicts; its numbers have units.
shardtool plan "$model" --tp 2 --budget 1MB --json > a.json
shardtool plan "$model" --tp 4 --budget 100kB --json --exit-zero > b.json
shardtool plan diff a.json b.json --format md; echo "exit $?"
shardtool plan diff a.json a.json --format md; echo "exit $?"
shardtool plan diff a.json b.json --format csv | head -3
shardtool plan diff a.json b.json --format json > diff.json; grep -c '"command": *"plan_diff"' diff.json

# Names from files cannot become markup.
cp -r "$model" 'a|b`*<i>'
shardtool inspect 'a|b`*<i>' --tp 2 --format md
shardtool inspect "$model" --filter '*.norm.weight' --format md

shardtool split "$model" --tp 2 -o out -q
shardtool check out --format md
shardtool validate out -r "$model" --format md
truncate -s -1 out/model-rank-1-part-0.safetensors
shardtool check out --format md; echo "exit $?"
shardtool validate out -r "$model" --format md; echo "exit $?"
shardtool validate --demo mlp --format md | head -n 8
