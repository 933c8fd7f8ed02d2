# Every sharding of a small model, forward and backward; the same on any number of devices.
shardtool validate --demo mlp --ranks 3; echo "-> $?"
shardtool validate --demo mlp --ranks 1 -q; echo "-> $?"
shardtool validate --demo mlp --ranks 2 --json | head -c 199; echo
shardtool validate --demo mlp --json > demo.json; echo "-> $?"
shardtool validate --demo mlp --ranks 0; echo "-> $?"
shardtool validate --demo mlp -m mapping.json; echo "-> $?"
shardtool validate --demo mlp --golden results.safetensors; echo "-> $?"
shardtool validate shards --demo mlp; echo "-> $?"
# Sizes and parameters of one's own: W0 and W1 are 2 x 2, of ones and twos.
shardtool validate --demo mlp --ranks 2 --sizes 4,6,4,8 -q; echo "-> $?"
shardtool validate --demo mlp --sizes 4,6; echo "-> $?"
header='{"layer_0/weights":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"layer_1/weights":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]}} '
one='\x00\x00\x80\x3f' two='\x00\x00\x00\x40'
{ printf "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; printf "$one$two$two$one$two$one$one$two"; } > mlp.safetensors
shardtool validate mlp.safetensors --demo mlp --ranks 2 | head -4; echo "-> $?"
shardtool validate mlp.safetensors --demo mlp --ranks 3 | tail -1; echo "-> $?"
shardtool validate mlp.safetensors --demo mlp --sizes 1,1,1,1; echo "-> $?"
# A signal ends it with an error, once it is caught: SIGINT is bit 1 of the mask.
set -m
"$program" validate --demo mlp --ranks 1 --sizes 128,128,128,128 & pid=$!
until grep -q '^SigCgt:.*[2367abef]$' /proc/$pid/status; do kill -0 $pid || exit 1; sleep 0.01; done
kill -INT $pid
wait $pid; echo "-> $?"
