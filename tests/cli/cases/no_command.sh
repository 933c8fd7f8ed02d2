# I01: the short help, as an error.
shardtool
