# A plan that was edited, that is none, or for another input is not applied.
shardtool -q split "$samples/tiny-llama" -o tp2 --tp 2
shardtool -q plan tp2 --to-mesh tp=4 -o plan.json
sed 's/"tp=4"/"tp=2"/' plan.json > edited.json
shardtool reshard --plan edited.json -o out; echo "exit $?"
echo '{"command": "plan"}' > none.json
shardtool reshard --plan none.json -o out; echo "exit $?"
shardtool -q split "$samples/tiny-llama" -o tp2 --tp 2 --force --max-file-size 100KB
shardtool reshard --plan plan.json -o out; echo "exit $?"
shardtool reshard --plan plan.json --to-mesh tp=2 -o out; echo "exit $?"
shardtool reshard --plan plan.json --rank 1 -o out; echo "exit $?"
shardtool reshard -o out; echo "exit $?"
shardtool plan diff none.json; echo "exit $?"
shardtool plan diff "$samples/tiny-llama/config.json" plan.json; echo "exit $?"
echo '{"format_version": "1.0", "command": 5}' > number.json
shardtool plan diff number.json plan.json; echo "exit $?"
shardtool plan diff plan.json number.json --json > document.json; echo "exit $?"
rm document.json
ls
