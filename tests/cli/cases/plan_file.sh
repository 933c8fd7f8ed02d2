# A plan is a product: reshard does exactly what it says, or nothing.
shardtool -q split "$samples/tiny-llama" -o tp2 --tp 2
shardtool -q split "$samples/tiny-llama" -o tp4 --tp 4
shardtool plan tp2 --to-mesh tp=4 -o plan.json | tail -1
shardtool reshard --plan plan.json -o resharded
diff -r tp4 resharded && echo 'as split would have written it'
shardtool reshard tp2 --plan plan.json -o again --json > /dev/null && echo 'as a document, too'
shardtool plan tp2 --to-mesh tp=4 -o plan.json; echo "exit $?"
shardtool -q plan tp2 --to-mesh tp=8 -o eight.json
shardtool plan diff plan.json eight.json
shardtool plan diff plan.json plan.json --json > /dev/null; echo "exit $?"
shardtool plan "$samples/tiny-llama" --tp 2 -o memory.json
shardtool plan "$samples/tiny-llama" --tp 2 --to-mesh tp=4 -o from.json
