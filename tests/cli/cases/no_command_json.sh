# I12: a usage error under --json is one document on standard output.
shardtool --json
