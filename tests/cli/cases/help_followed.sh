# What the help of an error says gets past the error: each line has the error, its help, and the exit status of what it
# advises. Errors of mappings are in tests/mapping/advice_test.cc.
here=$(pwd)
# refused COMMAND...: runs what is refused; prints its code and its help.
refused() {
  "$@" > out 2> err && echo "not refused: $*"
  grep -E '^error|help: ' err | sed -E "s:$here:HERE:g; s/^error\[(E[0-9]*)\].*/\1/; s/^ *help: /  /"
}
# advised COMMAND...: runs what was advised; prints its exit status.
advised() {
  "$@" > out 2> err; echo "  -> $?"
}
refused shardtool splt "$samples/tiny-llama" -o a --tp 2
advised shardtool split "$samples/tiny-llama" -o a --tp 2
refused shardtool split "$samples/tiny-llama" -o b --tp 2 --rank 1 --ranks 0
advised shardtool split "$samples/tiny-llama" -o b --tp 2 --rank 1
refused shardtool split "$samples/tiny-llama" -o a --tp 4
advised shardtool split "$samples/tiny-llama" -o a --tp 4 --force
refused shardtool split "$samples/tiny-llama" -o deep/er --tp 2
mkdir -p deep
advised shardtool split "$samples/tiny-llama" -o deep/er --tp 2
refused shardtool merge a -o a/inside
advised shardtool merge a -o beside
ln -s a link
refused shardtool merge beside -o link --force
shardtool -q split "$samples/tiny-llama" -o c --tp 2 --share 0/2 > out
refused shardtool finish c
refused shardtool split "$samples/tiny-llama" -o c --tp 4 --share 1/2
advised shardtool split "$samples/tiny-llama" -o c --tp 2 --share 1/2
shardtool -q split "$samples/tiny-llama" -o d --tp 2 --share 0/2 > out
refused shardtool split "$samples/tiny-llama" -o d --tp 4 --share 1/2
advised shardtool resume --discard "$here/d"
refused shardtool resume --discard d
advised shardtool resume --list "$here"
refused shardtool resume .
advised shardtool resume --list .
refused shardtool merge b -o whole
advised shardtool merge a -o whole
refused shardtool validate "$samples/tiny-llama"
advised shardtool validate a -r "$samples/tiny-llama"
refused shardtool plan "$samples/tiny-llama" --tp 2 --profile h100
