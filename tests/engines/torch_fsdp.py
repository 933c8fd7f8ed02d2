"""Has the program read the rank files that trainers write with torch.save, and compares them with the whole model.

usage: torch_fsdp.py SHARDTOOL
       torch_fsdp.py fixtures FOLDER    writes the folders of tests/format/torch/fixtures with this version of torch

verl and SkyRL save the state dict of every FSDP rank as model_world_size_N_rank_R.pt: a dict of DTensors, or of
ShardedTensors with FSDP 1.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

warnings.filterwarnings("ignore")

# name: (mesh, its axes, what is done with the model)
CASES = {
    "fsdp 2": ((2,), ("fsdp",), "fsdp2"),
    "fsdp 3": ((3,), ("fsdp",), "fsdp2"),
    "fsdp 4 with empty parts": ((4,), ("fsdp",), "fsdp2"),
    "hsdp 2 x 2": ((2, 2), ("ddp", "fsdp"), "fsdp2"),
    "fsdp 2 x tp 2": ((2, 2), ("fsdp", "tp"), "fsdp2"),
    "columns": ((2,), ("fsdp",), "columns"),
    "two cuts of each tensor": ((2, 2), ("a", "b"), "cuts"),
    "sharded tensors": ((3,), ("fsdp",), "shards"),
    "sharded tensors, some ranks without shards": ((6,), ("fsdp",), "shards"),
    "sharded tensors, several shards of a rank": ((2,), ("fsdp",), "dealt"),
}
# folder and version of torch: what is saved
FIXTURES = {("hsdp", "2.6"): "hsdp 2 x 2", ("fsdp", "2.10"): "fsdp 2", ("empty_parts", "2.13"): "fsdp 4 with empty parts",
            ("fsdp_tp", "2.13"): "fsdp 2 x tp 2", ("sharded_tensors", "2.13"): "sharded tensors"}
FIXTURE_TENSORS = ("0.weight", "1.weight", "1.bias", "steps")
MAPPING = {"version": 1, "mesh": [{"axis": "dp", "size": 2}],
           "rules": [{"match": "**", "strategy": {"type": "axiswise", "axis": 0}}]}


def model():
    """Layers with odd sizes, a buffer, and values that tell the elements apart."""
    layers = torch.nn.Sequential(torch.nn.Embedding(7, 4), torch.nn.Linear(4, 5), torch.nn.LayerNorm(5), torch.nn.Linear(5, 3))
    layers.register_buffer("steps", torch.arange(3))
    for number, parameter in enumerate(layers.parameters()):
        parameter.data = torch.arange(float(parameter.numel())).reshape(parameter.shape) + 100 * number
    return layers


def sharded(layers, mesh, kind):
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor

    if kind == "cuts":  # the form of FSDP 1, which needs a GPU, among them
        cuts = [[Replicate(), Shard(0)], [Shard(1), Shard(0)], [Shard(0), Shard(0)], [Shard(0), Replicate()]]

        def cut(name, layer, mesh):
            for number, (key, tensor) in enumerate(layer.named_parameters(recurse=False)):
                choice = cuts[(int(name or 0) + number) % 2 if tensor.ndim == 2 else 2 + number % 2]
                layer.register_parameter(key, torch.nn.Parameter(distribute_tensor(tensor, mesh, choice)))
        return distribute_module(layers, mesh, cut)
    if mesh.mesh_dim_names[-1] == "tp":
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        parallelize_module(layers, mesh["tp"], {"1": ColwiseParallel(), "3": RowwiseParallel()})
        return fully_shard(layers, mesh=mesh["fsdp"])
    if kind == "columns":
        return fully_shard(layers, mesh=mesh, shard_placement_fn=lambda p: Shard(1) if tuple(p.shape) == (5, 4) else None)
    for layer in (layers[1], layers[3]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(layers, mesh=mesh)


def shards(tensors, rank, size, kind):
    """The tensors as ShardedTensors: chunks of rows, one for each rank as FSDP 1 cuts them, or rows dealt out in turn."""
    from torch.distributed._shard.sharded_tensor import Shard, init_from_local_shards

    def local(tensor):
        rows = tensor.chunk(size if kind == "shards" else len(tensor))
        begins = [0, *torch.tensor([len(part) for part in rows]).cumsum(0).tolist()]
        return [Shard.from_tensor_and_offsets(part.clone(), [begins[i]] + [0] * (part.ndim - 1), rank)
                for i, part in enumerate(rows) if i % size == rank]
    return {name: init_from_local_shards(local(tensor), *tensor.shape) if tensor.is_floating_point() else tensor
            for name, tensor in tensors.items()}


def save(rank, shape, axes, kind, folder, names):
    """Saves what one rank of verl saves: its state dict, and the state of the trainer."""
    from torch.distributed.device_mesh import init_device_mesh

    size = torch.Size(shape).numel()
    dist.init_process_group("gloo", rank=rank, world_size=size, init_method=f"file://{folder}/.meet")
    if kind in ("shards", "dealt"):
        state = shards({name: tensor.detach() for name, tensor in model().state_dict().items()}, rank, size, kind)
    else:
        state = sharded(model(), init_device_mesh("cpu", shape, mesh_dim_names=axes), kind).state_dict()
    torch.save({name: tensor for name, tensor in state.items() if not names or name in names},
               f"{folder}/model_world_size_{size}_rank_{rank}.pt")
    torch.save({"lr_scheduler": {"last_epoch": 1}}, f"{folder}/extra_state_world_size_{size}_rank_{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


def save_all(case, folder, names=()):
    shape, axes, kind = CASES[case]
    folder.mkdir(parents=True)
    multiprocessing.spawn(save, (shape, axes, kind, str(folder), names), nprocs=torch.Size(shape).numel())


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def difference(program, folder, expected):
    """Merges, splits and merges again; returns what differs, or an empty text."""
    saved, merged, parts, again = (folder / name for name in ("saved", "merged", "parts", "again"))
    (folder / "mapping.json").write_text(json.dumps(MAPPING))
    problem = run(program, "check", saved) or run(program, "merge", saved, "-o", merged)
    problem = problem or run(program, "split", saved, "-m", folder / "mapping.json", "-o", parts, "--allow-empty-shards")
    problem = problem or run(program, "merge", parts, "-o", again) or run(program, "diff", saved, again)
    if problem:
        return problem
    from safetensors.torch import load_file

    found = {}
    for file in merged.glob("*.safetensors"):
        found.update(load_file(file))
    if found.keys() != expected.keys():
        return f"other names: {sorted(found.keys() ^ expected.keys())}"
    return ", ".join(name for name, tensor in expected.items()
                     if found[name].dtype != tensor.dtype or not torch.equal(found[name], tensor))


def main():
    if sys.argv[1] == "fixtures":
        for (name, version), case in FIXTURES.items():
            if torch.__version__.startswith(version + "."):
                save_all(case, pathlib.Path(sys.argv[2]) / name, FIXTURE_TENSORS)
        return 0
    program = sys.argv[1]
    expected = {name: tensor.detach() for name, tensor in model().state_dict().items()}
    failed = 0
    for case in CASES:
        with tempfile.TemporaryDirectory() as name:
            save_all(case, pathlib.Path(name) / "saved")
            problem = difference(program, pathlib.Path(name), expected)
        failed += bool(problem)
        print(f"FAIL FSDP rank files, torch {torch.__version__}: {case}: {problem}" if problem
              else f"PASS FSDP rank files, torch {torch.__version__}: {case}", flush=True)
    return min(1, failed)


if __name__ == "__main__":
    sys.exit(main())
