# shellcheck shell=bash
# sparse_source: writes source/model.safetensors, six tensors of 40 MiB with some bytes that differ, and mapping.json,
# which cuts their columns in two.
sparse_source() {
  local rows=40 columns=$((1 << 20)) bytes=$((40 << 20)) header='{' length i
  for i in 0 1 2 3 4 5; do
    header+="\"w$i\":{\"dtype\":\"U8\",\"shape\":[$rows,$columns],\"data_offsets\":[$((i * bytes)),$(((i + 1) * bytes))]},"
  done
  header=${header%,}\}
  printf -v length '\\x%02x\\x%02x\\0\\0\\0\\0\\0\\0' $((${#header} % 256)) $((${#header} / 256))
  mkdir source
  # shellcheck disable=SC2059
  printf "$length%s" "$header" >source/model.safetensors
  truncate -s $((8 + ${#header} + 6 * bytes)) source/model.safetensors
  for i in 0 1 2 3 4 5; do
    printf 'tensor %d' "$i" | dd of=source/model.safetensors bs=1 seek=$((8 + ${#header} + i * bytes + 5000)) \
      conv=notrunc status=none
  done
  echo '{"version": 1, "mesh": [{"axis": "tp", "size": 2}],
         "rules": [{"match": "w*", "strategy": "columnwise"}]}' >mapping.json
}
