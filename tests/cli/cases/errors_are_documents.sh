# I12: whatever goes wrong, --json gives one document.
shardtool inspect gone --json; echo "-> $?"
shardtool split --jsn --json; echo "-> $?"
shardtool merge a b -o c --threads 0 --json; echo "-> $?"
shardtool --json frobnicate; echo "-> $?"
