"""Exchanges checkpoints with torch.distributed.checkpoint and compares every tensor.

torch loads outputs of split: plain ones and those of --layout dcp-hf by HuggingFaceStorageReader, of --layout dcp by
dcp.load and dcp_to_torch_save. The program reads what two processes of torch save, and merges it.

usage: torch_dcp.py SHARDTOOL GOLDEN_MODEL
"""
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import safetensors
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

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
        return self.run("split", source, *flags)

    def run(self, verb, source, *flags):
        self.outputs += 1
        output = self.folder / f"out{self.outputs}"
        command = [self.program, verb, source, "-o", output, "--json", *flags]
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


def read_chunks(folder):
    """Returns all tensors of a folder with .metadata as dcp.load puts them together."""
    metadata = dcp.FileSystemReader(str(folder)).read_metadata()
    tensors = {name: torch.full(m.size, 0, dtype=m.properties.dtype)
               for name, m in metadata.state_dict_metadata.items()}
    dcp.load(tensors, checkpoint_id=str(folder), no_dist=True)
    return tensors


def read_converted(folder):
    """Returns all tensors of a folder with .metadata as dcp_to_torch_save converts them."""
    file = str(folder) + ".pt"
    dcp_to_torch_save(str(folder), file)
    return torch.load(file, weights_only=True)


READERS = {"dcp": [read_chunks, read_converted], "dcp-hf": [read_folder]}


def same_tensor(a, b):
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(a.contiguous().reshape(-1).view(torch.uint8),
                       b.contiguous().reshape(-1).view(torch.uint8))


def differences(source, folder, reader=read_folder):
    read = reader(folder)
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


def check_chunks(tool, label, source, model, *flags):
    """Has torch read both layouts of chunks, and merges them."""
    problems = []
    for layout, readers in READERS.items():
        output, _ = tool.split(model, *flags, "--layout", layout)
        for reader in readers:
            problems += [f"{label} {layout} {reader.__name__}: {name}"
                         for name in differences(source, output, reader)[:3]]
        merged, _ = tool.run("merge", output)
        problems += [f"{label} {layout} merge: {name}"
                     for name in differences(source, merged, read_merged)[:3]]
    return problems


def read_merged(folder):
    return load_file(folder / "model.safetensors")


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
        yield f"{name} in chunks", check_chunks(tool, name, source, model, "--mesh", "tp=2,ep=2")


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
        yield f"{label} in chunks", check_chunks(tool, label, source, folder / "model.safetensors", *flags)


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
    source = load_file(model / "model.safetensors")
    yield "gpt2 tp=2 in chunks", check_chunks(tool, "gpt2", source, model, "--mesh", "tp=2")


def numbers(*shape):
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


def saved_tensors():
    """Tensors of a training checkpoint, whole."""
    return {"rows": numbers(5, 3).to(torch.bfloat16), "columns": numbers(4, 6), "norm": numbers(5),
            "f8": numbers(4, 4).to(torch.float8_e4m3fn), "scalar": torch.tensor(3.0), "int": torch.arange(4),
            "bool": numbers(3) > 1}


def save_rank(rank, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29641", RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    whole = saved_tensors()
    cuts = {"rows": Shard(0), "columns": Shard(1), "norm": Replicate()}
    model = {name: distribute_tensor(tensor, mesh, [cuts[name]]) if name in cuts else tensor
             for name, tensor in whole.items()}
    model["f8"] = DTensor.from_local(whole["f8"][2 * rank:2 * rank + 2].clone(), mesh, [Shard(0)])
    dcp.save({"model": model, "optim": {"rows": model["rows"]}, "step": 7}, checkpoint_id=folder + "/classic")
    dcp.save(model, storage_writer=dcp.HuggingFaceStorageWriter(folder + "/hf", save_distributed=True))
    dist.destroy_process_group()


def check_saved(tool):
    """Merges what torch saves. torch's own consolidation of it has zeros for scalars and refuses integers."""
    folder = tool.folder / "saved"
    folder.mkdir()
    torch.multiprocessing.spawn(save_rank, (str(folder),), nprocs=2)
    for label, location in (("classic", f"{folder}/classic#model"), ("hf", str(folder / "hf"))):
        output, report = tool.run("merge", location)
        problems = differences(saved_tensors(), output, read_merged)
        warned = " ".join(report.get("warnings", []))
        if label == "classic" and ("step" not in warned or "optim" not in warned):
            problems.append(f"the report does not name what is left out: {warned}")
        yield f"saved by torch, {label}", problems


def main():
    program, golden_model = sys.argv[1:]
    print(f"torch {torch.__version__}, safetensors {safetensors.__version__}")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(program, folder)
        groups = [check_models(tool, golden_model), check_several_files(tool),
                  check_odd_tensors(tool), check_not_boxes(tool, golden_model),
                  check_saved(tool)]
        for group in groups:
            for label, problems in group:
                failed = failed or bool(problems)
                print("FAIL" if problems else "PASS", "torch", label, *problems, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
