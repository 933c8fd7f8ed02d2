# Shares write what one run writes; a finish names those that have not ended.
shardtool -q split "$samples/tiny-llama" -o lone --tp 4
shardtool split "$samples/tiny-llama" -o out --tp 4 --share 2/3
shardtool finish out; echo "exit $?"
shardtool split "$samples/tiny-llama" -o out --tp 8 --share 0/3; echo "exit $?"
shardtool -q split "$samples/tiny-llama" -o out --tp 4 --share 0/3
shardtool split "$samples/tiny-llama" -o out --tp 4 --share 2/3
shardtool split "$samples/tiny-llama" -o out --tp 4 --share=1/3 --json
shardtool split "$samples/tiny-llama" -o out --tp 4 --share 1/3
shardtool finish out
shardtool finish out --verify --json
diff -r lone out && echo equal

shardtool -q merge out -o whole --share 1/2
shardtool merge out -o whole --share 0/2
shardtool -q merge out -o whole_lone
diff -r whole_lone whole && echo equal
shardtool reshard out --to-mesh tp=2 -o two --share 5/64 --dry-run
shardtool finish nothing
