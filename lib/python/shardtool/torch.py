"""Outputs of shardtool in torch: load_rank for one process, StorageReader for torch.distributed.checkpoint."""

from typing import Any

import torch
from torch.distributed.checkpoint import Metadata, StorageReader as _StorageReader
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, TensorProperties, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadItemType
from torch.futures import Future

import shardtool as _st
from ._errors import UsageError
from ._frameworks import torch_form

__all__ = ["StorageReader", "load_rank"]


def load_rank(model: torch.nn.Module, path: Any, rank: int, *, strict: bool = True, **open_options: Any) -> Any:
    """Copies the rank's shards into the model's parameters and buffers of the same names, and returns what
    load_state_dict returns. With mesh=, a whole checkpoint is cut while it is read."""
    held = _st.open(path, **open_options).rank(rank, framework="pt")
    with torch.no_grad():
        return model.load_state_dict({name: held.get_tensor(name) for name in held.keys()}, strict=strict)


class StorageReader(_StorageReader):
    """Reads whatever shardtool reads for torch.distributed.checkpoint.load: every process gets the parts of its own
    tensors or DTensors, from the bytes that hold them and no others.

        dcp.load(state_dict, storage_reader=shardtool.torch.StorageReader("out/tp8"))
    """

    def __init__(self, path):
        super().__init__()
        self.path = path
        self._checkpoint = None

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True

    def reset(self, checkpoint_id=None):
        if checkpoint_id is not None:
            self.path = checkpoint_id
        self._checkpoint = None

    def _opened(self):
        if self._checkpoint is None:
            self._checkpoint = _st.open(self.path)
        return self._checkpoint

    def read_metadata(self, *args, **kwargs):
        tensors = {}
        checkpoint = self._opened()
        for name in checkpoint:
            info = checkpoint[name]
            dtype, shape, _ = torch_form(info.dtype, info.shape)
            size = torch.Size(shape)
            tensors[name] = TensorStorageMetadata(
                properties=TensorProperties(dtype=dtype), size=size,
                chunks=[ChunkStorageMetadata(offsets=torch.Size([0] * len(size)), sizes=size)])
        return Metadata(state_dict_metadata=tensors)

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        self._opened()

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        return plans

    def read_data(self, plan, planner):
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                raise UsageError(f"{item.storage_index.fqn} is no tensor, and outputs of shardtool have tensors only")
            stored = self._opened().get_slice(item.storage_index.fqn, framework="pt")
            _, _, elements = torch_form(stored.dtype, stored.shape)
            box = [slice(begin, begin + size) for begin, size in zip(item.storage_offsets, item.lengths)]
            if elements > 1:
                box[-1] = slice(box[-1].start * elements, box[-1].stop * elements)
            target = planner.resolve_tensor(item).detach()
            target.copy_(stored[tuple(box)])
            planner.commit_tensor(item, target)
        done = Future()
        done.set_result(None)
        return done
