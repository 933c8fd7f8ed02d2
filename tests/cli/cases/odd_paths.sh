# I04
for name in 'two words' $'new\nline' -dash '[a,b]' 'emoji 🙂' "quo'te" 'glob*'; do
  cp -r "$samples/tiny-llama" "./$name"
  shardtool -q split -o "./$name.parts" --tp 2 -- "$name" > /dev/null || echo "failed: split $name"
  shardtool -q merge -o "./$name.full" -- "$name.parts" > /dev/null || echo "failed: merge $name"
  shardtool diff -q -- "$name" "$name.full" || echo "failed: diff $name"
done
shardtool inspect '[a,b]' --json > document
