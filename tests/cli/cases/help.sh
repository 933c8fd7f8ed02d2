shardtool -h
shardtool split --help
