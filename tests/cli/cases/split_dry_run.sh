shardtool split "$samples/tiny-llama" -o out --tp 2 -n
shardtool split "$samples/tiny-llama" -o out --tp 2 -n -q
shardtool split "$samples/tiny-llama" -o out --tp 2 --dry-run --json
ls -A
# What would refuse the run is a warning.
mkdir full && touch full/file
for output in full missing/out "$samples/tiny-llama" "$samples/tiny-llama/out"; do
  shardtool -v split "$samples/tiny-llama" -o "$output" --tp 2 -n 2>&1 > /dev/null | grep refused
done
