"""usage: layered_model.py FOLDER LAYERS: writes a checkpoint of 32 MiB tensors of BF16, "rows.N" and "columns.N" for each
layer, as FOLDER/model.safetensors, and mapping.json in the working folder: to tp=4, by rows and by columns."""

import json
import os
import pathlib
import struct
import sys

ROWS = COLUMNS = 4096
BLOCK = 64 << 20

folder, layers = pathlib.Path(sys.argv[1]), int(sys.argv[2])
header, end = {}, 0
for layer in range(layers):
    for name in ("rows", "columns"):
        begin, end = end, end + ROWS * COLUMNS * 2
        header[f"{name}.{layer}"] = {"dtype": "BF16", "shape": [ROWS, COLUMNS], "data_offsets": [begin, end]}
text = json.dumps(header).encode()
block = os.urandom(BLOCK)
folder.mkdir(parents=True, exist_ok=True)
with open(folder / "model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    for at in range(0, end, BLOCK):
        file.write(block[:end - at])
rules = [{"match": "rows.*", "strategy": "rowwise"}, {"match": "columns.*", "strategy": "columnwise"}]
pathlib.Path("mapping.json").write_text(
    json.dumps({"version": 1, "mesh": [{"axis": "tp", "size": 4}], "rules": rules}))
