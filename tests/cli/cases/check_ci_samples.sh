# The commands that samples/ci shows run as they stand.
mkdir checkpoints
shardtool -q split "$samples/tiny-llama" -o checkpoints/tp2 --tp 2
cp -r "$samples/tiny-llama" checkpoints/whole
shardtool check checkpoints/* -q --write-baseline .shardtool-baseline.json
run() { echo "$1"; bash -c "$1" > out 2>&1; echo "-> $?"; tail -1 out; }
sed -n 's/^ *\(run: \|- \)\(shardtool check .*\)/\2/p' "$samples/ci/github-action.yml" "$samples/ci/gitlab.yml" |
  while read -r command; do run "$command"; done
hook=$(sed -n 's/^ *entry: //p' "$samples/ci/pre-commit-config.yaml")
run "$hook checkpoints/whole/*.safetensors"
ls *.sarif *.json *.xml
