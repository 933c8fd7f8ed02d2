"""Holds a JSON Schema against a table of verdicts, and documents against the schema.

usage: check_schema.py SCHEMA VERDICTS DOCUMENT...
The table is a list of rows with a "document", or has a "base": then the document of a row is the base changed by
"with", a JSON Merge Patch (RFC 7386), or a graph whose end begins with "op".
Exits 77 (skipped) where the Python package jsonschema is missing.
"""
import json
import sys

try:
    import jsonschema
except ImportError:
    print("SKIPPED: the Python package jsonschema (python3-jsonschema) is not installed")
    sys.exit(77)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def merged(target, patch):
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def document_of(row, base):
    if "op" in row:
        return {**base, "end": [row["op"], *base["end"]]}
    return row["document"] if "document" in row else merged(base, row["with"])


schema_path, verdicts_path, *document_paths = sys.argv[1:]
schema = load(schema_path)
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)

failures = []
table = load(verdicts_path)
base = table["base"] if isinstance(table, dict) else None
for row in table["rows"] if base else table:
    expected = row.get("schema", row["accept"])
    if validator.is_valid(document_of(row, base)) != expected:
        failures.append(f"{row['what']}: expected {'valid' if expected else 'invalid'}")
for path in document_paths:
    failures += [f"{path}: {error.message}" for error in validator.iter_errors(load(path))]

print("\n".join(failures) or f"{len(document_paths)} documents and the table agree with the schema")
sys.exit(1 if failures else 0)
