# I02: what is not a list of ranks is a usage error.
for value in -1 4.5 4abc '' 1e3 4294967296 18446744073709551616 3-0 1,1 0-65536; do
  shardtool split src -o out --ranks "$value"; echo "$value -> $?"
  shardtool split src -o out --rank "$value"; echo "$value -> $?"
done
for value in 0 -1 4.5 4abc '' 1e3 4294967296; do
  shardtool split src -o out --tp "$value"; echo "tp $value -> $?"
done
