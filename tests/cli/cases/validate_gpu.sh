# A GPU that is not there is an error, and the CPU does not answer in its place.
export CUDA_VISIBLE_DEVICES=
model=$samples/tiny-llama
shardtool -q split "$model" -o parts --tp 2
try() { shardtool validate "$@"; echo "-> $?"; }
try parts -r "$model" --engine gpu-virtual
try parts -r "$model" --engine gpu-virtual --json
try --demo mlp --engine gpu-virtual
try parts -r "$model" --engine cuda

# Meeting places: an invalid one, and a launch without an address.
try parts -r "$model" --meeting tcp://nowhere
export OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2
unset MASTER_ADDR MASTER_PORT
try parts -r "$model" --meeting env://
try parts -r "$model" --engine gpu-virtual
