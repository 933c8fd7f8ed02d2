"""Loads outputs of split by torch's HuggingFaceStorageReader and compares every tensor with the source.

usage: torch_dcp.py SHARDTOOL GOLDEN_MODEL
"""
import json
import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

import safetensors
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file, save_file

warnings.filterwarnings("ignore")
logging.getLogger("torch.distributed").setLevel(logging.ERROR)

MODELS = ["llama", "qwen3_moe", "mixtral", "deepseek_v3", "gemma3_text"]
MESHES = ["tp=2", "tp=4", "ep=2", "pp=2", "tp=2,ep=2"]
KEYS = {"DCP_SHARDING_INFO", "DCP_VERSION"}


class Tool:
    def __init__(self, program, folder):
        self.program = program
        self.folder = pathlib.Path(folder)
        self.outputs = 0

    def split(self, source, *flags):
        self.outputs += 1
        output = self.folder / f"out{self.outputs}"
        command = [self.program, "split", source, "-o", output, "--json", *flags]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{command} failed: {done.stdout.decode()}")
        return output, json.loads(done.stdout)


def read_folder(folder):
    """Returns all tensors of a folder as torch's reader puts them together."""
    metadata = dcp.HuggingFaceStorageReader(str(folder)).read_metadata()
    tensors = {name: torch.full(m.size, 0, dtype=m.properties.dtype)
               for name, m in metadata.state_dict_metadata.items()}
    dcp.load(tensors, storage_reader=dcp.HuggingFaceStorageReader(str(folder)), no_dist=True)
    return tensors


def same_tensor(a, b):
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(a.contiguous().reshape(-1).view(torch.uint8),
                       b.contiguous().reshape(-1).view(torch.uint8))


def differences(source, folder):
    read = read_folder(folder)
    if read.keys() != source.keys():
        return [f"names differ: {sorted(read.keys() ^ source.keys())[:3]}"]
    return [name for name in source if not same_tensor(source[name], read[name])]


def files_with_keys(folder):
    """Returns the numbers of all files and of those that have both of torch's keys."""
    files = sorted(folder.glob("*.safetensors"))
    with_keys = 0
    for file in files:
        with safetensors.safe_open(file, framework="pt") as opened:
            with_keys += KEYS <= (opened.metadata() or {}).keys()
    return len(files), with_keys


def check_read(tool, label, source, model, *flags):
    output, report = tool.split(model, *flags)
    files, with_keys = files_with_keys(output)
    if "not_boxes" in report["plan"]:
        return [f"{label}: {report['plan']['not_boxes']}"]
    if files != with_keys:
        return [f"{label}: {with_keys} of {files} files have the keys"]
    return [f"{label}: {name}" for name in differences(source, output)[:3]]


def check_models(tool, golden_model):
    for name in MODELS:
        model = tool.folder / name
        subprocess.run([golden_model, name, model], check=True)
        source = load_file(model / "model.safetensors")
        for mesh in MESHES:
            yield f"{name} {mesh}", check_read(tool, f"{name} {mesh}", source, model, "--mesh", mesh)


def check_several_files(tool):
    """Splits into many files a rank, and into one folder per rank that are then put together."""
    model = tool.folder / "llama"
    source = load_file(model / "model.safetensors")
    label = "llama tp=4, files of 8 kB"
    flags = ("--mesh", "tp=4", "--max-file-size", "8kB")
    yield label, check_read(tool, label, source, model, *flags)
    joined = tool.folder / "joined"
    joined.mkdir()
    for ranks in ("0-1", "2-3"):
        output, _ = tool.split(model, "--mesh", "tp=4", "--ranks", ranks)
        for file in output.glob("*.safetensors"):
            file.rename(joined / file.name)
    yield "llama tp=4, ranks written apart", differences(source, joined)


def check_odd_tensors(tool):
    """Splits scalars, all common dtypes, uneven and empty parts, and names that JSON escapes."""
    folder = tool.folder / "odd"
    folder.mkdir()
    numbers = torch.arange(60, dtype=torch.float32)
    source = {"whole.scalar": torch.tensor(3.0), "whole.none": numbers[:0].reshape(0, 4),
              "rows.int": torch.arange(7), "rows.bool": numbers[:6] > 2,
              'rows.quote"back\\slash': numbers.reshape(15, 4),
              "columns.tab\there": numbers.reshape(6, 10),
              "rows.é中": numbers.reshape(3, 4, 5).to(torch.float16),
              "rows.few": numbers[:6].reshape(3, 2),
              "rows.f8": numbers.reshape(10, 6).to(torch.float8_e4m3fn),
              "columns.bf16": numbers.reshape(20, 3).to(torch.bfloat16)}
    source = {name: tensor.clone() for name, tensor in source.items()}
    save_file(source, folder / "model.safetensors", metadata={"format": "pt"})
    rules = [{"match": "whole.*", "strategy": "replicate"},
             {"match": "rows.*", "strategy": "rowwise"},
             {"match": "columns.*", "strategy": "columnwise"}]
    for devices in (2, 3, 5):
        mapping = tool.folder / f"odd{devices}.json"
        mapping.write_text(json.dumps(
            {"version": 1, "mesh": [{"axis": "tp", "size": devices}], "rules": rules}))
        label = f"odd tensors tp={devices}"
        flags = ("--mapping", mapping, "--allow-empty-shards")
        yield label, check_read(tool, label, source, folder / "model.safetensors", *flags)


def check_not_boxes(tool, golden_model):
    """Requires that no file has the keys where one tensor has several intervals or padding."""
    model = tool.folder / "gpt2"
    subprocess.run([golden_model, "gpt2", model], check=True)
    output, report = tool.split(model, "--mesh", "tp=2")
    _, with_keys = files_with_keys(output)
    problems = [] if with_keys == 0 else [f"{with_keys} files have the keys"]
    if "c_attn" not in report["plan"].get("not_boxes", {}).get("tensor", ""):
        problems.append("the report does not name the tensor")
    yield "gpt2 tp=2 has no keys", problems


def main():
    program, golden_model = sys.argv[1:]
    print(f"torch {torch.__version__}, safetensors {safetensors.__version__}")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(program, folder)
        groups = [check_models(tool, golden_model), check_several_files(tool),
                  check_odd_tensors(tool), check_not_boxes(tool, golden_model)]
        for group in groups:
            for label, problems in group:
                failed = failed or bool(problems)
                print("FAIL" if problems else "PASS", "torch", label, *problems, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
