#!/usr/bin/env bash
# usage: s3_bench.sh SHARDTOOL FOLDER [ROUNDS]
# A split from an object store against `curl -Z` with the same ranges of the same server, in interleaved rounds: 1.3 GiB of
# BF16, 20 layers of two matrices, to tp=4. The server is nginx on this machine, which answers any signature. Prints the
# requests and bytes of the split, the seconds of each round and the median of the ratios. Needs nginx and curl.
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

now() { date +%s.%N; }
split() { "$shardtool" split s3://bucket/model -m mapping.json -o out -q >/dev/null; }
fetch() { mkdir -p fetched; curl -Z --parallel-max 20 --config "$1" 2>/dev/null; }

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

ratios=() bare=()
for ((round = 0; round <= rounds; ++round)); do
  sync; begin=$(now); split; middle=$(now)
  sync; again=$(now); fetch ranges.txt; end=$(now)
  [[ $(du -bs fetched | cut -f1) -ge $bytes ]]
  third=$(now); fetch nowhere.txt; last=$(now)
  rm -rf out fetched
  [[ $round != 0 ]] || continue  # warms up
  ratios+=("$(awk -v a="$begin" -v b="$middle" -v c="$again" -v d="$end" 'BEGIN { printf "%.3f", (d - c) / (b - a) }')")
  bare+=("$(awk -v a="$begin" -v b="$middle" -v c="$third" -v d="$last" 'BEGIN { printf "%.3f", (d - c) / (b - a) }')")
  awk -v a="$begin" -v b="$middle" -v c="$again" -v d="$end" -v e="$third" -v f="$last" \
    'BEGIN { printf "split %.2f s, curl -Z to files %.2f s, to /dev/null %.2f s\n", b - a, d - c, f - e }'
done
median() { printf '%s\n' "$@" | sort -n | sed -n "$(((rounds + 1) / 2))p"; }
echo "speed of the split, of that of curl -Z to files (median): $(median "${ratios[@]}"), to /dev/null: $(median "${bare[@]}")"
