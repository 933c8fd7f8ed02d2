# I08, G01, and a budget below the minimum: nothing is written.
mkdir full; echo kept > full/file
try() { shardtool split "$samples/tiny-llama" "$@"; echo "-> $?"; }
try -o out --tp 4 --rank 4
try -o out --tp 4 --ranks 0-4
try -o full --tp 2
try -o out --tp 2 --max-memory 1
try -o out --mesh tp=x
try -o out --preset lama
try -o out -m gone.json
ls -A; cat full/file
