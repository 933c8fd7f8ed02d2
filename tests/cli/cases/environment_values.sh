SHARDTOOL_PROGRESS=sometimes shardtool version; echo "-> $?"
SHARDTOOL_COLOR=purple shardtool version; echo "-> $?"
SHARDTOOL_COLOR=always shardtool version; echo "-> $?"
env -u HOME TMPDIR=/nonexistent "$program" version; echo "-> $?"
# I14: neither matters.
env -u HOME TMPDIR=/nonexistent "$program" -q split "$samples/tiny-llama" -o parts --tp 2; echo "-> $?"
env -u HOME TMPDIR=/nonexistent "$program" -q merge parts -o full; echo "-> $?"
