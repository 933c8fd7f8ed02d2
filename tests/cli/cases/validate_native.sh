# The native run reports rounding beside the verdict. On CPUs it uses no GEMM library.
model=$samples/tiny-llama
shardtool -q split "$model" -o parts --tp 2
shardtool validate parts -r "$model" --native | grep -E "V4|native"
shardtool validate parts -r "$model" --native --json > report.json
grep -o '"name": "native", "verdict": "[a-z]*"' report.json
grep -o '"type": "[A-Z0-9]*", "rounding"' report.json
grep -c '"native_products"' report.json
shardtool validate parts --quick --native; echo "-> $?"
