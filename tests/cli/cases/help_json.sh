shardtool help merge --json
