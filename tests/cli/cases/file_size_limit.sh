# G12: a file size limit of the process is a failed write, not its end by a signal.
(ulimit -f 100; shardtool split "$samples/tiny-llama" -o out --tp 2); echo "-> $?"
ls -A
