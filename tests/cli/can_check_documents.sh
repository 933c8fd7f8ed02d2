#!/bin/bash
# The cases hold every document against its schema only where python3 has jsonschema: this test says
# so when it has not. Where it has, a document that breaks its schema must be noticed.
set -u
here=$(dirname "$(realpath "$0")")
if ! python3 -c 'import jsonschema' 2> /dev/null; then
  echo "skipped: python3 has no jsonschema (apt-get install python3-jsonschema)"
  exit 77
fi
broken=$(mktemp)
trap 'rm -f "$broken"' EXIT
tool='"format_version": "1.0", "tool": {"name": "shardtool", "version": "0.1.0"}'
check() { python3 -W ignore "$here/check_document.py" "$1" "$broken" > /dev/null 2>&1; }

echo "{$tool, \"command\": \"help\", \"status\": \"ok\", \"text\": \"\"}" > "$broken"
check "$1" || { echo "a sound document is refused"; exit 1; }
echo "{$tool, \"command\": \"help\", \"status\": \"ok\"}" > "$broken"
check "$1" && { echo "a document without its field passes"; exit 1; }
doubled="\"text\": \"\", \"text\": \"\""
echo "{$tool, \"command\": \"help\", \"status\": \"ok\", $doubled}" > "$broken"
check "$1" && { echo "a document with a duplicate key passes"; exit 1; }
exit 0
