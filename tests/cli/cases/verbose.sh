shardtool -v explain E0101 > stdout
shardtool inspect gone -v; echo "-> $?"
