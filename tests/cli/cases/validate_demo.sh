# Every sharding of a small model, forward and backward; the same on any number of devices.
shardtool validate --demo mlp --ranks 3; echo "-> $?"
shardtool validate --demo mlp --ranks 1 -q; echo "-> $?"
shardtool validate --demo mlp --ranks 2 --json | head -c 200; echo
shardtool validate --demo mlp --ranks 0; echo "-> $?"
shardtool validate shards --demo mlp; echo "-> $?"
