# H11: the reader stops, inspect does not mind.
for i in $(seq 20); do
  "$program" inspect "$samples/tiny-llama" --tensors | head -n 1 > /dev/null
  echo "${PIPESTATUS[0]}"
done | sort -u
