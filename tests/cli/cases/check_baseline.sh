# A baseline lets a job fail on new findings only.
cp -r "$samples/tiny-llama" model
sed -i 's/"vocab_size": 1000/"vocab_size": 1001/' model/config.json
check() { shardtool check model "$@"; echo "-> $?"; }
check -q --write-baseline known.json
cat known.json
check --baseline known.json
sed -i 's/"hidden_size": 64/"hidden_size": 63/' model/config.json
check --baseline known.json --format gitlab
check --baseline gone.json
