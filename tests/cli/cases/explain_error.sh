shardtool explain E0203
shardtool explain e0501 --json
