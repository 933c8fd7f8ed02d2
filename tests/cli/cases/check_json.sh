# The document is held against its schema.
cp -r "$samples/tiny-llama" model
sed -i 's/"vocab_size": 1000/"vocab_size": 1001/' model/config.json
shardtool check model --json; echo "-> $?"
shardtool check model --format json --exit-zero; echo "-> $?"
shardtool check "$samples/tiny-llama" --json --read-data; echo "-> $?"
shardtool check gone --json; echo "-> $?"
shardtool explain ST0403 --json
shardtool check --rules --json | head -c 300; echo
