query() { shardtool inspect "$samples/tiny-llama" --filter '**.0.**.o_proj.weight' "$@"; }
query --query name,dtype,shape,bytes,offset --format csv
query --query name,shape --format tsv
query --query name,shape --format md
query --query shape,name
query --format csv --tp 2 --query name,rule,axes
shardtool inspect "$samples/tiny-llama" --filter 'nothing.*' --format csv
