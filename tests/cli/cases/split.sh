shardtool split "$samples/tiny-llama" -o 'out folder' --tp 2
ls 'out folder'
