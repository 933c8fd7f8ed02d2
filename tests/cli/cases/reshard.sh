# The result is byte for byte what split would have written.
shardtool -q split "$samples/tiny-llama" -o tp2 --tp 2
shardtool -q split "$samples/tiny-llama" -o tp4 --tp 4
shardtool reshard tp2 -o resharded --to-mesh tp=4
for file in tp4/model-rank-*; do cmp "$file" "resharded/${file#tp4/}"; done
shardtool reshard tp2 -o again --tp 4 --json
