#!/usr/bin/env bash
# usage: s3_bench.sh SHARDTOOL FOLDER [ROUNDS]
# A split from an object store, and reading alone (`check --read-data`), against `curl -Z` with the same ranges of the same
# server, in interleaved rounds: 1.3 GiB of BF16, 20 layers of two matrices, to tp=4. The server is nginx on this machine, which
# answers any signature. Prints the requests and bytes of the split, the seconds of each round, and medians: of CPU seconds,
# and of the ratios. Needs nginx and curl.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
shardtool=$1 folder=$2 rounds=${3:-5}
for program in nginx curl; do
  command -v $program >/dev/null || { echo "SKIPPED: no $program"; exit 0; }
done
work=$(mktemp -d -p "$folder")
server=
stop() { [[ -z $server ]] || kill "$server" || true; rm -rf "$work"; }
trap stop EXIT
cd "$work"

mkdir -p logs
python3 "$here/layered_model.py" www/bucket/model 20

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >nginx.conf <<END
daemon off; user root; worker_processes 2; pid $work/pid; error_log $work/logs/error.log;
events { worker_connections 256; }
http {
  sendfile on; tcp_nopush on; keepalive_requests 1000000;
  log_format plain '\$request_method \$http_range \$body_bytes_sent';
  access_log $work/logs/access.log plain;
  default_type application/octet-stream;
  server {
    listen 127.0.0.1:$port;
    root $work/www;
    location = /bucket { alias $work/listing.xml; }
  }
}
END
nginx -p "$work" -c nginx.conf 2>/dev/null &
server=$!
url=http://127.0.0.1:$port/bucket/model/model.safetensors
until curl -sfI "$url" >head.txt 2>/dev/null; do sleep 0.1; done
tag=$(sed -n 's/^[Ee][Tt]ag: *\(.*\)\r$/\1/p' head.txt)
bytes=$(stat -c %s www/bucket/model/model.safetensors)
echo "<ListBucketResult><Contents><Key>model/model.safetensors</Key><Size>$bytes</Size><ETag>$tag</ETag></Contents>\
<IsTruncated>false</IsTruncated></ListBucketResult>" >listing.xml
export AWS_ENDPOINT_URL=http://127.0.0.1:$port AWS_ACCESS_KEY_ID=id AWS_SECRET_ACCESS_KEY=secret
export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null

split() { "$shardtool" split s3://bucket/model -m mapping.json -o out -q >/dev/null; }
# Findings about the model, which is none of a family, are no failure.
reading() { "$shardtool" check --read-data s3://bucket/model >read.txt || [[ $? = 1 ]]; }
fetch() { curl -Z --parallel-max 20 --config "$1" 2>/dev/null; }
# Notes wall and CPU seconds of a command.
TIMEFORMAT='%R %U %S'
timed() {
  local name=$1 took
  shift
  sync
  took=$({ time "$@"; } 2>&1)
  read -r wall user system <<<"$took"
  walls[$name]=$wall
  awk -v a="$user" -v b="$system" 'BEGIN { print a + b }' >>"cpu.$name"
}
ratio() { awk -v a="${walls[$1]}" -v b="${walls[$2]}" 'BEGIN { printf "%.3f\n", b / a }' >>"ratio.$1.$2"; }

: >logs/access.log
"$shardtool" split s3://bucket/model -m mapping.json -o out | sed -n 's/.*\(peak memory .*\)/\1/p'
requests=$(wc -l <logs/access.log)
sed -n 's/^GET bytes=\([0-9]*-[0-9]*\) .*/\1/p' logs/access.log >ranges
awk -v url="$url" '{ printf "%surl = \"%s\"\nrange = \"%s\"\noutput = \"fetched/%d\"\n", (NR > 1 ? "next\n" : ""), url, $1, NR }' \
  ranges >ranges.txt
sed 's/^output = .*/output = "\/dev\/null"/' ranges.txt >nowhere.txt
awk -v size="$bytes" -v requests="$requests" '{ sum += $3 } END {
  printf "%d requests, %d bytes of %d, read amplification %.3f\n", requests, sum, size, sum / size }' logs/access.log
"$shardtool" split www/bucket/model -m mapping.json -o local -q >/dev/null
diff -r local out
rm -rf local out

declare -A walls
for ((round = 0; round <= rounds; ++round)); do
  mkdir fetched
  timed split split
  timed files fetch ranges.txt
  [[ $(du -bs fetched | cut -f1) -ge $bytes ]]
  timed nowhere fetch nowhere.txt
  timed reading reading
  [[ $(cat read.txt) = *"all data read"* ]]
  rm -rf out fetched
  if [[ $round = 0 ]]; then  # warms up
    rm cpu.*
    continue
  fi
  ratio split files; ratio split nowhere; ratio reading nowhere
  echo "split ${walls[split]} s, curl -Z to files ${walls[files]} s, to /dev/null ${walls[nowhere]} s, reading ${walls[reading]} s"
done
median() { sort -n "$1" | sed -n "$(((rounds + 1) / 2))p"; }
echo "medians of $rounds rounds"
for name in split files nowhere reading; do echo "CPU seconds of $name: $(median cpu.$name)"; done
echo "speed of the split, of that of curl -Z to files: $(median ratio.split.files), to /dev/null: $(median ratio.split.nowhere)"
echo "speed of reading alone, of that of curl -Z to /dev/null: $(median ratio.reading.nowhere)"
