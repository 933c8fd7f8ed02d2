# I01: each with a hint.
shardtool spilt
shardtool frobnicate
shardtool split --mesj tp=2
shardtool merge a -o b --rank 1
shardtool --jsno inspect
shardtool inspect a b
shardtool split a -o b --layout plan
shardtool split a -o b --straddle padded
shardtool split a -o b --dtype bfloat16
shardtool split a -o b --dtype float
shardtool explain E0230
shardtool explain manifest
shardtool help mrege
shardtool inspect a --query nmae
