# A signal ends validate with 128 + its number and one line, and nothing is left.
set -m  # without job control, bash has its background jobs ignore SIGINT
model=$samples/tiny-llama
shardtool -q split "$model" -o parts --tp 2
for signal in HUP INT TERM; do
  "$program" validate parts -r "$model" --tokens 2048 --progress json 2> told & pid=$!
  until [ -s told ]; do kill -0 $pid || exit 1; sleep 0.01; done
  kill -$signal $pid
  wait $pid; echo "$signal -> $?"
  grep -v '^{' told
  ls -A
done
