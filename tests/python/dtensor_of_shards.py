"""usage: dtensor_of_shards.py MEETING RANK PROCESSES OUTPUT MODEL: one process of a mesh makes DTensors of its shards."""

import os
import sys

import torch
from torch.distributed.tensor import DTensor

import shardtool as st

meeting, rank, processes, output, model = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=processes)
ck, whole = st.open(output), st.open(model)
held = ck.rank(rank, framework="pt")
device_mesh = None
for name in ck:
    expected = whole.get_tensor(name, framework="pt")
    arguments = ck[name].layout.to_dtensor(device_mesh)
    device_mesh = arguments["device_mesh"]
    tensor = DTensor.from_local(held.get_tensor(name), **arguments)
    assert tensor.shape == expected.shape and device_mesh.mesh_dim_names == tuple(ck.mesh), name
    assert torch.equal(tensor.full_tensor(), expected), name
torch.distributed.destroy_process_group()
print("done", flush=True)
os._exit(0)  # a thread of gloo that frees a tensor while the interpreter ends aborts the process
