# Outputs of every version that tests/kept has are read as they are: checked, merged, moved and compared.
for archive in "$samples"/../tests/kept/*.tar.gz; do
  version=$(basename "$archive" .tar.gz)
  mkdir "$version"
  tar xf "$archive" -C "$version"
  for output in plain vllm dcp-hf cast; do
    echo "$version $output"
    shardtool check "$version/$output" --read-data | sed 's/ in .*//'
    shardtool -q merge "$version/$output" -o merged
    shardtool -q diff "$version/model" merged --values && echo equal
    shardtool -q reshard "$version/$output" --to-mesh tp=1 -o moved
    shardtool -q diff merged moved && echo equal
    rm -rf merged moved
  done
done
