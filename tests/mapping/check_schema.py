"""Holds schema/mapping-v1.json against tests/mapping/verdicts.json, the presets and the samples.

usage: check_schema.py SCHEMA VERDICTS DOCUMENT...
Exits 77 (skipped) where the Python package jsonschema is missing.
"""
import json
import sys

try:
    import jsonschema
except ImportError:
    print("SKIPPED: the Python package jsonschema (python3-jsonschema) is not installed")
    sys.exit(77)

schema_path, verdicts_path, *document_paths = sys.argv[1:]
with open(schema_path, encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)

failures = []
with open(verdicts_path, encoding="utf-8") as file:
    for row in json.load(file):
        expected = row.get("schema", row["accept"])
        if validator.is_valid(row["document"]) != expected:
            failures.append(f"{row['what']}: expected {'valid' if expected else 'invalid'}")
for path in document_paths:
    with open(path, encoding="utf-8") as file:
        failures += [f"{path}: {error.message}" for error in validator.iter_errors(json.load(file))]

print("\n".join(failures) or f"{len(document_paths)} documents and the table agree with the schema")
sys.exit(1 if failures else 0)
