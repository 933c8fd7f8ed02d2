#!/usr/bin/env bash
# usage: make_pages.sh SHARDTOOL SHARE
# Writes the man pages and the completions below SHARE. The program describes its commands itself, so
# that neither can drift from --help; only shardtool-mapping(5) is written by hand.
set -euo pipefail
shardtool=$1
share=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

mkdir -p "$share"/man/man{1,5} "$share"/bash-completion/completions \
  "$share"/zsh/site-functions "$share"/fish/vendor_completions.d
"$shardtool" completion bash >"$share/bash-completion/completions/shardtool"
"$shardtool" completion zsh >"$share/zsh/site-functions/_shardtool"
"$shardtool" completion fish >"$share/fish/vendor_completions.d/shardtool.fish"

export SOURCE_DATE_EPOCH=0 # scdoc dates its pages; same program, same bytes
page() { scdoc >"$share/man/man$2/$1.$2"; }
page shardtool-mapping 5 <"$here/shardtool-mapping.5.scd"
"$shardtool" help --man | page shardtool 1
for command in $("$shardtool" help --man | sed -n 's/^\*shardtool-\(.*\)\*(1)$/\1/p'); do
  "$shardtool" help --man "$command" | page "shardtool-$command" 1
done
