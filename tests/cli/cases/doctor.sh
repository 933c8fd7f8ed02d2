shardtool doctor --json > document
case $? in 0 | 1) echo "looked" ;; *) echo "failed" ;; esac
