# A folder with two formats: the first counts, and every command can insist on the other.
cp -r "$samples/tiny-llama" model
shardtool -q split model -o chunks --tp 2 --layout dcp
rm chunks/manifest.json
cp -r chunks/. model

shardtool inspect model | head -n 2
shardtool inspect safetensors:model | head -n 2
shardtool diff dcp:model safetensors:model
shardtool -q merge dcp:model -o merged && shardtool -q diff merged chunks && echo "merged"
shardtool -q split safetensors:model -o shards --tp 2
shardtool -q reshard dcp:model -o same --tp 2 && shardtool -q diff shards same && echo "resharded"
shardtool -q validate shards --reference dcp:model --quick > report; echo "-> $?"
shardtool plan safetensors:model --tp 2 | head -n 1
shardtool explain safetensors:model model.norm.weight --tp 2 | head -n 1
shardtool check safetensors:model | sed 's/ in [0-9.]* s/ in [..] s/'
shardtool check dcp:model | sed 's/ in [0-9.]* s/ in [..] s/'

try() { shardtool "$@"; echo "-> $?"; }
try merge torch:model -o never
try merge gguf:model -o never
try inspect safetensor:model
try inspect dcp:model/model-00001-of-00002.safetensors
