SHARDTOOL_PROGRESS=sometimes shardtool version; echo "-> $?"
SHARDTOOL_COLOR=purple shardtool version; echo "-> $?"
SHARDTOOL_COLOR=always shardtool version; echo "-> $?"
env -u HOME TMPDIR=/nonexistent "$program" version; echo "-> $?"
