shardtool --version
shardtool version
shardtool split --version
shardtool version --json
