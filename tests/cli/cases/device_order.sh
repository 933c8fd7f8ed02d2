# The ranks of a mesh's cells are listed: the shards are those of the ordinary order, under other ranks.
src=$samples/tiny-llama
shardtool -q split "$src" -o plain --mesh pp=2,tp=2
shardtool split "$src" -o ordered --mesh pp=2,tp=2:0,2,1,3 2>&1 | sed 's/in [0-9.]* s.*/in [..]/'
grep -o "\"device_order\":[^]]*]" ordered/manifest.json
shardtool check ordered --read-data | sed "s,in [0-9.]* s,in [..]," | tail -1
shardtool validate ordered --reference "$src" --quick | tail -1 | sed "s, in .*,,"
shardtool plan ordered --to-mesh pp=2,tp=2 --detailed-exitcode -q || echo rank 1 and 2 change places
shardtool -q reshard ordered -o back --to-mesh pp=2,tp=2
diff -r plain back -x manifest.json && echo same files
shardtool axis mlp --size 8 --mesh pp=2,tp=2:0,2,1,3 --preset llama
shardtool axis mlp --size 8 --mesh pp=2,tp=2:0,2,1,3 --preset llama --json > axis.json
shardtool split "$src" -o refused --mesh tp=2:0,0
shardtool split "$src" -o refused --mesh tp=2:1
shardtool split "$src" -o refused --mesh tp=2:0,b
