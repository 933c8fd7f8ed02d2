# H11: a reader that went away has all it wanted; a stream that never was is an error.
"$program" completion zsh | head -n 1; echo "${PIPESTATUS[0]}"
"$program" version >&-; echo $?
"$program" nothing 2>&-; echo $?
