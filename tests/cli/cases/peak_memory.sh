# A launcher's memory, such as that of torchrun's Python, does not count as the program's.
printf -v ballast '%*s' 400000000 ''
"$program" split "$samples/tiny-llama" -o out --tp 2 --json > report.json
peak=$(grep -o '"peak_rss_bytes":[ 0-9]*' report.json | grep -o '[0-9]*$')
((peak > 1000000)) && ((peak < 300000000)) && echo "its own"
