# I03
try() { shardtool "$@"; echo "-> $?"; }
try split src -o out --mesh
try split src -o out --mesh --json
try split src -o out --mesh=
try split src -o out --mesh tp=2 --mesh tp=4
# The variable of a script that is not set.
try split src -o out -m ''
try reshard src -o out --to ''
try validate src -r ''
try split src -o out --mesh tp=2 --tp 4
try split src -o out -m a.json --preset llama
try split src -o out --rank 1 --ranks 0-1
try split src
try split -o out
try merge -o out
try reshard src -o out
try split src -o out --set axes
try split src -o out --force=yes
try presets show
