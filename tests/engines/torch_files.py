"""Has the program read what torch.save writes, and compares the tensors of merge with torch's own.

usage: torch_files.py SHARDTOOL
       torch_files.py SHARDTOOL fixtures FOLDER    writes the files of tests/format/torch/fixtures again
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
from safetensors.torch import load_file

warnings.filterwarnings("ignore")

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8,
          torch.uint8, torch.bool, torch.complex64, torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn,
          torch.float8_e5m2]
MAPPING = {"version": 1, "mesh": [{"axis": "tp", "size": 2}],
           "rules": [{"match": "cut.**", "strategy": {"type": "axiswise", "axis": 0}},
                     {"match": "whole.**", "strategy": "replicate"}]}
REFUSED = {
    "transposed": lambda: torch.ones(2, 3).t(),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    "meta": lambda: torch.ones(3, device="meta"),
    "conjugate": lambda: torch.ones(2, dtype=torch.complex64).conj(),
    "complex128": lambda: torch.ones(2, dtype=torch.complex128),
    "module": lambda: torch.nn.Linear(2, 2),
}


def state_dict():
    """Every dtype, a tied tensor, a view, parameters, buffers, a scalar and an empty tensor."""
    torch.manual_seed(0)
    tensors = collections.OrderedDict()
    for number, dtype in enumerate(DTYPES):
        bits = torch.randint(0, 2 if dtype is torch.bool else 256, (6 * 5 * dtype.itemsize,), dtype=torch.uint8)
        tensors[f"cut.{number}"] = bits.view(dtype).reshape(6, 5)
    tensors["cut.tied"] = tensors["cut.0"]
    tensors["cut.view"] = tensors["cut.0"][2:4]
    tensors["cut.empty"] = torch.zeros(0, 4)
    tensors["whole.scalar"] = torch.tensor(3.5)
    tensors["whole.parameter"] = torch.nn.Parameter(torch.ones(3))
    tensors["whole.buffer"] = torch.nn.Buffer(torch.ones(2))
    return tensors


def raw(tensor):
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def difference(program, folder, source, expected):
    """Splits and merges a source; returns what differs, or an empty text."""
    (folder / "mapping.json").write_text(json.dumps(MAPPING))
    parts, merged = folder / "parts", folder / "merged"
    for command in (["split", source, "-m", folder / "mapping.json", "-o", parts, "--allow-empty-shards"],
                    ["merge", parts, "-o", merged]):
        done = run(program, *command)
        if done.returncode != 0:
            return done.stderr
    found = {}
    for file in merged.glob("*.safetensors"):
        found.update(load_file(file))
    if found.keys() != expected.keys():
        return f"other names: {sorted(found.keys() ^ expected.keys())}"
    return ", ".join(name for name, tensor in expected.items()
                     if found[name].dtype != tensor.dtype or found[name].shape != tensor.shape
                     or raw(found[name]) != raw(tensor))


def report(name, problem):
    print(f"FAIL torch files: {name}: {problem}" if problem else f"PASS torch files: {name}", flush=True)


def check_forms(program):
    tensors = state_dict()
    for form, is_zip in (("zip", True), ("legacy", False)):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            torch.save(tensors, folder / "model.pt", _use_new_zipfile_serialization=is_zip)
            report(form, difference(program, folder, folder / "model.pt", tensors))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "model"
        folder.mkdir()
        index = {"metadata": {}, "weight_map": {}}
        for part, keys in enumerate((list(tensors)[::2], list(tensors)[1::2]), 1):
            file = f"pytorch_model-{part:05}-of-00002.bin"
            torch.save({key: tensors[key] for key in keys}, folder / file)
            index["weight_map"].update({key: file for key in keys})
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
        report("index", difference(program, pathlib.Path(name), folder, tensors))


def check_refusals(program):
    for kind, make in REFUSED.items():
        for is_zip in (True, False):
            with tempfile.TemporaryDirectory() as name:
                file = pathlib.Path(name) / "model.pt"
                torch.save({"a": make()}, file, _use_new_zipfile_serialization=is_zip)
                done = run(program, "inspect", file)
                named = done.returncode == 4 and "error[E0307]" in done.stderr and "help:" in done.stderr
                report(f"{kind} is refused, {'zip' if is_zip else 'legacy'}", "" if named else f"status {done.returncode}: {done.stderr}")


def write_fixtures(folder):
    small = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(3, dtype=torch.bfloat16),
             "epoch": 3}
    small["tied"] = small["a"]
    small["row"] = small["a"][1:]
    torch.save(small, pathlib.Path(folder) / "zip.pt")
    torch.save(small, pathlib.Path(folder) / "legacy.pt", _use_new_zipfile_serialization=False)


if __name__ == "__main__":
    if sys.argv[2:3] == ["fixtures"]:
        write_fixtures(sys.argv[3])
    else:
        check_forms(sys.argv[1])
        check_refusals(sys.argv[1])
