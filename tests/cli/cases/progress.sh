# Lines for a program, the last one a summary; --quiet and --progress never win.
shardtool split "$samples/tiny-llama" -o a --tp 2 -q --progress json
SHARDTOOL_PROGRESS=json shardtool merge a -o b --progress never > stdout
SHARDTOOL_PROGRESS=json shardtool merge a -o c > stdout
