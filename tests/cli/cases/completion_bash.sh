# The completions of a shell after these words.
source <(shardtool completion bash)
offer() {
  COMP_WORDS=(shardtool "$@") COMP_CWORD=$#
  _shardtool
  echo "$*: ${COMPREPLY[*]}"
}
offer sp
offer --col
offer split --re
offer split --layout ''
offer merge --replicas c
offer --color al
offer split x --color n
offer completion z
offer help resh
offer plan se
offer plan search --obj
offer plan search model --objective g
offer plan search.json --to-p
# What follows a word of the command, whatever flags are typed before it; files where nothing is known.
offer presets ''
offer presets show lla
offer presets show fp8_bl
offer presets list ''
offer graphs show deepseek_v3
offer layouts show vl
offer plan ''
offer plan profile ''
offer plan --tp 2 profile show l
offer plan model ''
offer plan model --tp ''
offer plan model -o ''
offer split model --layout = vl
offer plan model --to-mesh tp = ''
offer help plan ''
offer bench io ''
shardtool completion tcsh
