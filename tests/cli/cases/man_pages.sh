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
