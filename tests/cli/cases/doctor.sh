shardtool doctor --json > document
case $? in 0 | 1) echo "looked" ;; *) echo "failed" ;; esac
shardtool doctor --mpi-plugin missing.so | grep -E '^  .. +(CUDA driver|GEMM library|engine)'
# A cache that the system refuses to look into is no end of the list.
HF_HUB_CACHE=/$(printf 'x%.0s' {1..300}) shardtool doctor | grep -A1 'Hugging Face' | tr -s 'x ' | sed 's,^ *\(ok\|help:\) *,,'
