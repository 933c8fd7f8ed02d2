# The shape of the answer; the numbers are the machine's. Nothing stays.
shardtool bench io --size 2MiB --rounds 2 | tr -s " "
shardtool bench io . --size 1MiB --rounds 1 -q
shardtool bench io --size 1MiB --rounds 3 --json > document
python3 -c '
import json
document = json.load(open("document"))
print(document["bytes"], document["rounds"], [m["name"] for m in document["measures"]])
assert all(len(m["seconds"]) == 3 and m["bytes_per_second"] > 0 for m in document["measures"])'
ls -A
shardtool bench; echo "-> $?"
shardtool bench cpu; echo "-> $?"
shardtool bench io --size 1KiB; echo "-> $?"
shardtool bench io --rounds 0; echo "-> $?"
shardtool bench io gone; echo "-> $?"
shardtool bench io --size 900TiB; echo "-> $?"
# A signal ends it cleanly.
set -m
"$program" bench io --size 64MiB --rounds 1000 & pid=$!
until compgen -G '.shardtool-bench-*/parts' > /dev/null; do kill -0 $pid || exit 1; sleep 0.01; done
kill -INT $pid
wait $pid; echo "-> $?"
ls -A
