# I06, I07, from flags and from the environment.
for value in 0 10Q -5M 1.5 '' 1e30; do
  shardtool split src -o out --max-memory "$value"; echo "$value -> $?"
done
for value in 0 100000 -1 two; do
  shardtool split src -o out --threads "$value"; echo "$value -> $?"
done
SHARDTOOL_THREADS=many shardtool split src -o out; echo "-> $?"
SHARDTOOL_MAX_MEMORY=10Q shardtool merge src -o out; echo "-> $?"
