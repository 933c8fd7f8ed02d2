# A name of a built-in document that is typed wrong is bad usage, whatever it names; in a file it is a bad file.
model=$samples/tiny-llama
for command in 'presets show' 'graphs show' 'layouts show' 'plan profile show' schema; do
  shardtool $command nosuch 2> /dev/null; echo "$command: $?"
done
status() { shardtool -q "$@" > /dev/null 2>&1; echo "$1 $3: $?"; }
status split "$model" --preset nosuch --tp 2 -o out
status split "$model" --layout nosuch --tp 2 -o out
status plan "$model" --preset nosuch
status plan "$model" --layout nosuch
status plan "$model" --profile nosuch
status plan "$model" --to-preset nosuch
status plan "$model" --compare nosuch
status check "$model" --preset nosuch
status inspect "$model" --preset nosuch
status init "$model" --preset nosuch
echo '{"version": 1, "extends": ["preset:nosuch"]}' > mapping.json
status plan "$model" --mapping mapping.json
shardtool -q split "$model" -o parts --tp 2 > /dev/null
echo '{"version": 1, "family": "mine", "extends": "nosuch", "description": "d", "source": "s", "model_types": []}' > graph.json
status validate parts --graph graph.json
