shardtool doctor --json > document
case $? in 0 | 1) echo "looked" ;; *) echo "failed" ;; esac
shardtool doctor --mpi-plugin missing.so | grep -E '^  .. +(CUDA driver|GEMM library|engine)'
