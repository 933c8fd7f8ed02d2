# Times stand in a document with six digits, and what does not fit has none.
shardtool plan "$samples/tiny-llama" --profile h100-sxm --prompt-len 16 --json |
  grep -o '"roofline": {[^{]*'
shardtool plan "$samples/tiny-llama" --profile h100-sxm --budget 300KB --prompt-len 16
shardtool plan "$samples/tiny-llama" --profile h100-sxm --budget 300KB --prompt-len 16 --json --exit-zero |
  grep -o '"untimed": "[^"]*"\|"roofline"'
