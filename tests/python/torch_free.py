"""Reads safetensors files with the standard library alone, to compare with."""

import json
import struct


def read_file(path):
    """{name: (shape, bytes)} of one file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length :]
    return {name: (tuple(row["shape"]), body[slice(*row["data_offsets"])]) for name, row in header.items()}
