# A profile of this machine: the shape of the answer, the numbers are the machine's. Nothing stays.
calibrate() { shardtool plan profile calibrate "$@"; echo "-> $?"; }
calibrate --size 4MiB --rounds 1 -o here.json > answer
head -6 answer | tr -s " "
tail -2 answer
python3 -c '
import json
profile = json.load(open("here.json"))
print(profile["name"], profile["fabric"]["kind"], profile["fabric"]["domain"])
print([(t["op"], t["devices"], len(t["us_of_bytes"])) for t in profile["timings"]])
print(sorted(profile["storage"]), sorted(profile["measured"]))'
shardtool plan profile calibrate --size 4MiB --rounds 1 --ranks 3 --json > profile.json
# It is a profile as any other: a reshard has times through files, a forward pass those of the table.
shardtool -q split "$samples/tiny-llama" -o tp2 --tp 2
shardtool plan tp2 --to-mesh tp=4 --profile here.json | grep "^time\|^model"
shardtool plan "$samples/tiny-llama" --tp 2 --profile here.json | grep -c measured
shardtool plan "$samples/tiny-llama" --to-mesh tp=2 --profile here.json --json > loads.json
ls -A
calibrate -o here.json
calibrate -o here.txt
calibrate --ranks 1
calibrate --engine tcp
calibrate --size 1KiB
calibrate gone
calibrate a b
shardtool plan "$samples/tiny-llama" --ranks 2; echo "-> $?"
