# H12: an answer that cannot be written is an error.
"$program" version --json > /dev/full
