# The exit code is the answer: 0 same, 1 different, 4 unreadable or not what was written.
shardtool -q split "$samples/tiny-llama" -o parts --tp 2
try() { shardtool diff "$@"; echo "-> $?"; }
try "$samples/tiny-llama" parts
cp -r "$samples/tiny-llama" changed
printf '\001' | dd of=changed/model-00001-of-00002.safetensors bs=1 conv=notrunc status=none \
  seek=$(($(stat -c %s changed/model-00001-of-00002.safetensors) - 1))
try "$samples/tiny-llama" changed
try "$samples/tiny-llama" changed --metadata-only
try "$samples/tiny-llama" changed -q
try "$samples/tiny-llama" changed --json
try "$samples/tiny-llama" gone
# A file that the manifest does not name is not compared, which the answer says.
cp parts/model-rank-1-part-0.safetensors parts/model-rank-2-part-0.safetensors
try "$samples/tiny-llama" parts
rm parts/model-rank-2-part-0.safetensors
# With exchanged files the manifest does not say which values the output has.
cp -r parts exchanged
mv parts/model-rank-0-part-0.safetensors exchanged/model-rank-1-part-0.safetensors
mv parts/model-rank-1-part-0.safetensors exchanged/model-rank-0-part-0.safetensors
try "$samples/tiny-llama" exchanged
