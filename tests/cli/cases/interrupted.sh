# H03: a signal ends a run with 128 + its number, and nothing is left. The source is sparse.
set -m  # without job control, bash has its background jobs ignore SIGINT
mkdir source
bytes=$((2 << 30))
header="{\"w\":{\"dtype\":\"U8\",\"shape\":[2048,$((1 << 20))],\"data_offsets\":[0,$bytes]}}"
printf "\\x$(printf %02x ${#header})\0\0\0\0\0\0\0%s" "$header" > source/big.safetensors
truncate -s $((8 + ${#header} + bytes)) source/big.safetensors
echo '{"version": 1, "mesh": [{"axis": "tp", "size": 2}],
       "rules": [{"match": "w", "strategy": "rowwise"}]}' > mapping.json
for signal in HUP INT TERM; do
  "$program" split source/big.safetensors -m mapping.json -o out --threads 1 --json > said & pid=$!
  until compgen -G '.out.shardtool-*' > /dev/null; do kill -0 $pid || exit 1; sleep 0.01; done
  kill -$signal $pid
  wait $pid; echo "$signal -> $?"
  grep -o '"exit": [0-9]*' said; rm said
  ls -A
done
