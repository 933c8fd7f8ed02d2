# G12: a file size limit of the process is a failed write, not its end by a signal.
(ulimit -f 100; shardtool split "$samples/tiny-llama" -o out --tp 2); echo "-> $?"
ls -A
# A report that cannot be written is named, and nothing of it stays.
cp -r "$samples/tiny-llama" model
sed -i 's/"vocab_size": 1000/"vocab_size": 999/' model/config.json
touch model/pytorch_model.bin
(ulimit -f 1; shardtool check model --format sarif --output report.sarif); echo "-> $?"
shardtool check model --output /dev/full; echo "-> $?"
ls -A
