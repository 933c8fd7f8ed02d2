# What launches the program may be large, as torchrun's Python is; it is not counted.
printf -v ballast '%*s' 400000000 ''
"$program" split "$samples/tiny-llama" -o out --tp 2 --json > report.json
peak=$(grep -o '"peak_rss_bytes":[ 0-9]*' report.json | grep -o '[0-9]*$')
((peak > 1000000)) && ((peak < 300000000)) && echo "its own"
