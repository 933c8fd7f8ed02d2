# The ranks of a mesh's cells are listed: the shards are those of the ordinary order, under other ranks.
src=$samples/tiny-llama
shardtool -q split "$src" -o plain --mesh dp=2,tp=2
shardtool split "$src" -o ordered --mesh dp=2,tp=2:0,2,1,3 2>&1 | sed 's/in [0-9.]* s.*/in [..]/'
for name in plain/*.safetensors; do cksum < "$name"; done | sort > plain.sums
for name in ordered/*.safetensors; do cksum < "$name"; done | sort > ordered.sums
cmp plain.sums ordered.sums && echo same shards
grep -A1 -E '"device_order"|"rank":2' ordered/manifest.json | tr -d ' \n' | cut -c1-100; echo
shardtool check ordered --source "$src" | tail -1
shardtool validate ordered --quick | tail -2
shardtool plan ordered --to-mesh dp=2,tp=2 --detailed-exitcode -q || echo rank 1 and 2 change places
shardtool -q reshard ordered -o back --to-mesh dp=2,tp=2
diff -r plain back -x manifest.json && echo same files
shardtool axis mlp --size 8 --mesh dp=2,tp=2:0,2,1,3 --preset llama
shardtool axis mlp --size 8 --mesh dp=2,tp=2:0,2,1,3 --preset llama --json > axis.json
shardtool split "$src" -o refused --mesh tp=2:0,0
shardtool split "$src" -o refused --mesh tp=2:1
shardtool split "$src" -o refused --mesh tp=2:0,b
