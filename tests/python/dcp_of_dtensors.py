"""usage: dcp_of_dtensors.py MEETING RANK PROCESSES OUTPUT MODEL: one process loads its part of DTensors by
torch.distributed.checkpoint out of an output whose layout is another."""

import os
import sys

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import shardtool as st
import shardtool.torch

meeting, rank, processes, output, model = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=processes)
mesh = init_device_mesh("cpu", (processes,), mesh_dim_names=("fsdp",))
whole = st.open(model)
state = {}
for number, name in enumerate(whole):
    empty = torch.zeros(whole[name].shape, dtype=torch.bfloat16)
    kinds = [Shard(0), Shard(len(whole[name].shape) - 1), Replicate(), None]
    kind = kinds[number % len(kinds)]
    state[name] = empty if kind is None else distribute_tensor(empty, mesh, [kind])
dcp.load(state, storage_reader=shardtool.torch.StorageReader(output))
for name, tensor in state.items():
    expected = whole.get_tensor(name, framework="pt")
    if isinstance(tensor, torch.distributed.tensor.DTensor):
        tensor, expected = tensor.to_local(), distribute_tensor(expected, mesh, tensor.placements).to_local()
    assert torch.equal(tensor, expected), name
torch.distributed.destroy_process_group()
print("done", flush=True)
os._exit(0)  # a thread of gloo that frees a tensor while the interpreter ends aborts the process
