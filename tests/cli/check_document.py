"""Holds a document of `shardtool --json` against the schema of its command.

usage: check_document.py SCHEMAS DOCUMENT
"""
import json
import pathlib
import sys

import jsonschema


def refuse_duplicates(pairs):
    keys = [key for key, _ in pairs]
    if len(keys) != len(set(keys)):
        raise ValueError(f"duplicate keys in {keys}")
    return dict(pairs)


schemas = pathlib.Path(sys.argv[1])
text = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
document = json.loads(text, object_pairs_hook=refuse_duplicates)
name = "error" if document.get("status") == "error" else document["command"]
schema = json.loads((schemas / f"{name}.json").read_text(encoding="utf-8"))
common = (schemas / "document.json").read_text(encoding="utf-8")
if '"#/' in common:
    sys.exit("document.json: jsonschema 4.10 looks for a relative $ref in the schema that refers to this one")
base = json.loads(common)
resolver = jsonschema.RefResolver(schema["$id"], schema, store={base["$id"]: base})
jsonschema.Draft7Validator.check_schema(schema)
problems = list(jsonschema.Draft7Validator(schema, resolver=resolver).iter_errors(document))
for problem in problems:
    where = "/".join(str(part) for part in problem.absolute_path)
    print(f"{name}.json: at /{where}: {problem.message}")
sys.exit(1 if problems else 0)
