# --force replaces outputs of shardtool alone, and nothing that others have put into them.
refused() {
  "$@" 2> err && echo "not refused: $*"
  sed -n '1,2s/^error\[\(E[0-9]*\)\]/\1/p' err
}
split() { shardtool -q split "$samples/tiny-llama" "$@" --force; }
mkdir web && echo '{"name":"pwa"}' > web/manifest.json && echo x > web/thesis.tex
refused split -o web --tp 2
echo '{' > web/manifest.json
refused split -o web --tp 2
rm web/manifest.json && mkdir web/manifest.json
refused split -o web --tp 2
refused shardtool merge web -o web --force
split -o out --tp 2
sed 's/"mesh"/"mash"/' out/manifest.json > changed && cp -r out damaged && cp changed damaged/manifest.json
refused split -o damaged --tp 4
mkdir out/notes && refused split -o out --tp 4 && rmdir out/notes
echo x > out/adapter.safetensors && refused split -o out --tp 4 && rm out/adapter.safetensors
mkdir source && cp "$samples"/tiny-llama/* source
mv source/model-00001-of-00002.safetensors out/model-rank-9-part-0.safetensors
ln -s ../out/model-rank-9-part-0.safetensors source/model-00001-of-00002.safetensors
refused shardtool split source -o out --tp 4 --force
rm out/model-rank-9-part-0.safetensors
split -o out --tp 4
ls web out damaged | grep -v json
