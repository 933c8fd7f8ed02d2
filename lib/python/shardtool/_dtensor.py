"""Layouts as torch's DTensor has them."""

import math

from ._errors import UsageError, refusal


def _mesh_over_all_processes(axes, device_order):
    import torch
    from torch.distributed.device_mesh import DeviceMesh

    ranks = math.prod(axes.values())
    processes = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 0
    if processes != ranks:
        raise refusal(UsageError, f"a mesh of {ranks} ranks needs as many processes, and the process group has {processes}",
                      "call torch.distributed.init_process_group in each of them, or give a DeviceMesh")
    order = torch.tensor(device_order or range(ranks)).reshape(tuple(axes.values()))
    return DeviceMesh("cpu", order, mesh_dim_names=tuple(axes))


def local_arguments(axes, device_order, placements, shape, device_mesh):
    """See Layout.to_dtensor; `axes` are names and sizes, `shape` is that of the whole tensor."""
    from torch import Size, empty
    from torch.distributed.tensor import Replicate, Shard

    if device_mesh is None:
        device_mesh = _mesh_over_all_processes(axes, device_order)
    elif tuple(device_mesh.shape) != tuple(axes.values()):
        sizes = tuple(axes.values())
        raise refusal(UsageError, f"the DeviceMesh has the sizes {tuple(device_mesh.shape)}, and the layout {sizes}",
                      "make one with the layout's mesh")
    return {
        "device_mesh": device_mesh,
        "placements": [Replicate() if axis is None else Shard(axis) for axis in placements],
        "shape": Size(shape),
        "stride": empty(shape, device="meta").stride(),
    }
