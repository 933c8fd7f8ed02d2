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

# The same fault in two folders is two faults, and a tree that moves keeps its baseline.
mkdir -p tree/out tree/ci
cp -r "$samples/tiny-llama" tree/out/a
sed -i 's/"vocab_size": 1000/"vocab_size": 1001/' tree/out/a/config.json
cp -r tree/out/a tree/out/b
(cd tree && shardtool check out/a -q --write-baseline ci/known.json; cat ci/known.json)
mv tree moved
count() { shardtool check "$@" --baseline moved/ci/known.json | grep -E "^check|ST0403"; }
count moved/out/a
count "$PWD/moved/out/a"
count moved/out/a moved/out/b
sed -i 's/"2.0"/"1.0"/' moved/ci/known.json
shardtool check moved/out/a --baseline moved/ci/known.json; echo "-> $?"
