SHARDTOOL_PROGRESS=sometimes shardtool version; echo "-> $?"
SHARDTOOL_COLOR=purple shardtool version; echo "-> $?"
SHARDTOOL_COLOR=always shardtool version; echo "-> $?"
SHARDTOOL_THREADS=0 shardtool -q split "$samples/tiny-llama" -o refused --tp 2; echo "-> $?"
SHARDTOOL_THREADS=0 shardtool -q split "$samples/tiny-llama" -o refused --tp 2 --threads none; echo "-> $?"
env -u HOME TMPDIR=/nonexistent "$program" version; echo "-> $?"
# I14: neither matters.
env -u HOME TMPDIR=/nonexistent "$program" -q split "$samples/tiny-llama" -o parts --tp 2; echo "-> $?"
env -u HOME TMPDIR=/nonexistent "$program" -q merge parts -o full; echo "-> $?"
