# Ranks that were cut from two checkpoints with the same headers are not joined, even where all tensors that both outputs
# hold whole are equal.
cp -r "$samples/tiny-llama" other
python3 - other/model-00001-of-00002.safetensors <<'EOF'
import json, struct, sys
path = sys.argv[1]
data = bytearray(open(path, "rb").read())
begin = 8 + struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:begin])
for name, tensor in header.items():
    if "norm" in name or name == "__metadata__":
        continue
    first, last = tensor["data_offsets"]
    data[begin + first:begin + last] = data[begin + first:begin + last][::-1]
open(path, "wb").write(data)
EOF
ranks() { shardtool -q split "$1" -o "$2" --tp 4 --ranks "$3"; }
ranks "$samples/tiny-llama" a 0-1
ranks "$samples/tiny-llama" b 2-3
ranks other c 2-3
shardtool -q merge a b -o ab
shardtool merge a c -o ac; echo "-> $?"
shardtool reshard a c --to-mesh tp=2 -o tp2; echo "-> $?"
# An output that is cut on by rank has the digests of the output that it is cut from.
shardtool -q split "$samples/tiny-llama" -o t --tp 2
shardtool -q split other -o u --tp 2
shardtool -q reshard t --to-mesh tp=4 --ranks 0-1 -o t0
shardtool -q reshard t --to-mesh tp=4 --ranks 2-3 -o t2
shardtool -q reshard u --to-mesh tp=4 --ranks 2-3 -o u2
shardtool -q merge t0 t2 -o tt
shardtool merge t0 u2 -o tu; echo "-> $?"
