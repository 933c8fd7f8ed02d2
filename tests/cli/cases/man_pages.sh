# Every page is valid scdoc.
if ! command -v scdoc > /dev/null; then echo "all pages are valid"; exit; fi
for topic in '' $(shardtool -h | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  shardtool help $topic --man | scdoc > /dev/null || echo "bad page: $topic"
done
echo "all pages are valid"

# The page on graphs has every op.
man=$samples/../cli/man/shardtool-graph.5.scd
sed -n 's/.*{"\([a-z_]*\)", &OpDecoder.*/\1/p' "$samples/../lib/model/graph/decode_op.cc" | while read -r op; do
  grep -q "\*$op\*" "$man" || echo "no word of: $op"
done
