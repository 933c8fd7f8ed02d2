# Bytes that move between two layouts, with the lower bound; the exit code is 0 if none moves.
shardtool -q split "$samples/tiny-llama" -o tp2 --tp 2
shardtool plan tp2 --to-mesh tp=4 --explain model.layers.0.mlp.down_proj.weight --node-size 2
shardtool plan tp2 --to-mesh tp=2
shardtool plan "$samples/tiny-llama" --to-mesh tp=2 --format csv | head -3
shardtool plan tp2 --to-mesh tp=4 --format md | head -22
shardtool -q plan tp2 --to-mesh tp=2 --detailed-exitcode; echo "exit $?"
shardtool -q plan tp2 --to-mesh tp=4 --detailed-exitcode; echo "exit $?"
shardtool -q plan tp2 --to-mesh tp=3 --detailed-exitcode 2> /dev/null; echo "exit $?"
shardtool -q plan tp2 --to-mesh 2>/dev/null --detailed-exitcode; echo "exit $?"
