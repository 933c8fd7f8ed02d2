shardtool help merge --json
# The flags of help do the same.
shardtool help merge --json > by_command.json
shardtool merge --help --json | cmp by_command.json -
shardtool -h --json | cut -c 1-100
