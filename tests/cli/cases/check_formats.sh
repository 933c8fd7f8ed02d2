# Output formats for CI systems. Names with markup characters are escaped.
cp -r "$samples/tiny-llama" model
sed -i 's/"vocab_size": 1000/"vocab_size": 999/' model/config.json
touch 'model/a,b:c%<d>.bin'
check() { shardtool check model "$@"; echo "-> $?"; }
check --format github
GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=summary.md check --fail-on warning
cat summary.md
check --format sarif
check --format gitlab
check --format junit --output report.xml
sed -n 1,3p report.xml
grep -c '<testcase' report.xml
grep -A3 ST0601 report.xml
check --format github --output no/such/folder

# With a file, --json is for standard output; - is standard output.
known() { sed 's/, "seconds": [^}]*//' "$@"; }
check --json --output both.json > out; tail -n 1 out
sed '$d' out | known | cmp - <(known both.json) && echo equal
check --json --format junit --output both.xml > out
sed '$d' out | known | cmp - <(known both.json) && echo equal
head -n 1 both.xml
check --output - | tail -n 2
ls
