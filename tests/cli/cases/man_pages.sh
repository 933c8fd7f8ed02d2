# Every page is valid scdoc.
if ! command -v scdoc > /dev/null; then echo "all pages are valid"; exit; fi
for topic in '' $(shardtool -h | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  shardtool help $topic --man | scdoc > /dev/null || echo "bad page: $topic"
done
echo "all pages are valid"

# The page of the program has every variable that object stores read.
page=$(shardtool help --man | tr -d '\\')
for name in $(grep -oh '"\(AWS\|SHARDTOOL\)_[A-Z0-9_]*"' "$samples"/../lib/store/s3/*.cc | tr -d '"' | sort -u); do
  grep -qw "$name" <<<"$page" || echo "no word of: $name"
done

# The page on graphs has every op.
man=$samples/../cli/man/shardtool-graph.5.scd
table="$samples/../lib/ops/op_table.cc"
names=$(sed -n 's/^    row<.*>("\([a-z_]*\)".*/\1/p' "$table")
test "$(echo "$names" | wc -l)" = "$(grep -c '^    row<' "$table")" || echo "rows without a name"
for op in $names; do
  grep -q "\*$op\*" "$man" || echo "no word of: $op"
done
