# Shares that have ended are remains that can go on; --list names the missing ones, --discard deletes all.
where=$(pwd)
shardtool resume --list .
shardtool -q split "$samples/tiny-llama" -o 'two words' --tp 4 --share 1/3
shardtool resume --list . | sed "s:$where:HERE:g; s:$samples:SAMPLES:g"
shardtool resume --list . --json | sed "s:$where:HERE:g; s:$samples:SAMPLES:g"
(mkdir deeper && cd deeper && shardtool resume --list '../two words' | sed "s:$where:HERE:g; s:$samples:SAMPLES:g")

# The line that it prints goes on.
go_on=$(shardtool resume --list . --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["go_on"])')
eval "$go_on"
shardtool -q resume --list . | sed "s:$where:HERE:g"
(flock -x 9; shardtool resume --list . | sed "s:$where:HERE:g" | head -1
 shardtool resume --discard 'two words' 2>&1 | head -1) 9> '.two words.shardtool.lock'
rm '.two words.shardtool.lock'
shardtool resume --discard 'two words' | sed "s:$where:HERE:g"
ls -A
shardtool resume --discard 'two words'; echo "exit $?"

# A hidden folder is named, too; a link and another's journal are not followed.
shardtool -q split "$samples/tiny-llama" -o out --tp 4 --share 1/3
shardtool -q resume --discard .out.shardtool-*.tmp | sed "s:$where:HERE:g"
name=.out.shardtool-00000000000000000000000000000000
mkdir precious && touch precious/file && ln -s precious $name.tmp
shardtool resume --list .
shardtool resume --discard out 2>&1 | head -1
rm $name.tmp && ls -A . precious

# A run that was killed before its first record may have finished tensors: nothing says that it has not.
mkdir $name.tmp
shardtool resume --list . | sed "s:$where:HERE:g"
shardtool resume --discard out | sed "s:$where:HERE:g"
shardtool resume --list nothing
shardtool resume .
