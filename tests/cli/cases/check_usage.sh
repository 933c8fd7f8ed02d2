# Invalid options are refused before any file is read.
try() { shardtool check "$@"; echo "-> $?"; }
try
try model --format xml
try model --fail-on note
try model --profile vlm
try model --ignore ST99
try model --read-data-subset 0/3
try model --read-data-subset 4/3
try model --read-data-subset 0%
try model --read-data-subset 5x%
try model --read-data-subset much
try model
shardtool check --rules | head -3
shardtool check --rules | wc -l
shardtool explain E | head -3
shardtool explain E --json > /dev/null
shardtool check --rules --profile hub | grep ST0503
shardtool check --rules --ignore ST05 | grep ST0503
shardtool explain st0301
shardtool explain ST0300
