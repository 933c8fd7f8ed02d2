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
shardtool completion tcsh
