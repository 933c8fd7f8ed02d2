"""Writes a checkpoint of torch.distributed.checkpoint whose files have no block of data, of any size.

usage: sparse_dcp.py FOLDER TENSORS ROWS COLUMNS RANKS

BF16 tensors "model.w0", "model.w1", ..., of which each of the RANKS files has as many rows, and a step that is no tensor.
"""
import io
import os
import pickle
import struct
import sys
import types
import zlib

METADATA = "torch.distributed.checkpoint.metadata"


class Writer(pickle._Pickler):
    """Pickles stand-ins of torch's objects under torch's names."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_global(self, obj, name=None):
        if not hasattr(obj, "torch_name"):
            return super().save_global(obj, name)
        module, name = obj.torch_name
        self.write(b"c" + module.encode() + b"\n" + name.encode() + b"\n")
        self.memoize(obj)

    dispatch[type] = save_global
    dispatch[types.FunctionType] = save_global

    def persistent_id(self, obj):
        return obj.storage if isinstance(obj, Storage) else None


class Storage:
    def __init__(self, *storage):
        self.storage = storage


def stand_in(module, name):
    return type(name, (), {"torch_name": (module, name), "__init__": lambda self, **fields: self.__dict__.update(fields)})


class Call:
    """Pickled as a call of a function of torch."""

    def __init__(self, module, name, *arguments):
        def function():
            pass

        function.torch_name = (module, name)
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


def pickled(value):
    out = io.BytesIO()
    Writer(out, protocol=2).dump(value)
    return out.getvalue()


def record(name, offset, data, size, alignment=64):
    """Returns the local header of a stored record up to its data, and its entry in the directory."""
    name = name.encode()
    pad = -(offset + 30 + len(name) + 4) % alignment
    extra = b"FB" + struct.pack("<H", pad) + b"Z" * pad
    crc = zlib.crc32(data) if data else 0
    head = struct.pack("<HHHHHIII", 20, 0, 0, 0, 0, crc, size, size)
    local = b"PK\x03\x04" + head + struct.pack("<HH", len(name), len(extra)) + name + extra
    entry = b"PK\x01\x02" + struct.pack("<H", 20) + head + struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, offset) + name
    return local, entry


def blob(shape):
    """Returns the frame of torch.save of a BF16 tensor: what precedes the data, their size, and what follows."""
    rows, columns = shape
    storage = Storage("storage", stand_in("torch", "BFloat16Storage"), "0", "cpu", rows * columns)
    tensor = Call("torch._utils", "_rebuild_tensor_v2", storage, 0, shape, (columns, 1), False,
                  Call("collections", "OrderedDict"))
    pickle_text, size = pickled(tensor), 2 * rows * columns
    front, entries = b"", b""
    for name, data in (("archive/data.pkl", pickle_text), ("archive/version", b"3\n"), ("archive/data/0", None)):
        local, entry = record(name, len(front), data, size if data is None else len(data))
        front += local + (data or b"")
        entries += entry
    end = struct.pack("<HHHHIIH", 0, 0, 3, 3, len(entries), len(front) + size, 0)
    return front, size, entries + b"PK\x05\x06" + end


def main():
    folder, (tensors, rows, columns, ranks) = sys.argv[1], map(int, sys.argv[2:])
    os.makedirs(folder)
    front, size, back = blob((rows // ranks, columns))
    length = len(front) + size + len(back)
    for rank in range(ranks):
        with open(f"{folder}/__{rank}_0.distcp", "wb") as file:
            for number in range(tensors):
                file.seek(number * length)
                file.write(front)
                file.seek(size, os.SEEK_CUR)
                file.write(back)
    index, info = stand_in(METADATA, "MetadataIndex"), stand_in("torch.distributed.checkpoint.filesystem", "_StorageInfo")
    chunk, entry = stand_in(METADATA, "ChunkStorageMetadata"), stand_in(METADATA, "TensorStorageMetadata")
    dtype = type("bfloat16", (), {"torch_name": ("torch", "bfloat16")})
    properties = stand_in(METADATA, "TensorProperties")()
    layout = Call("torch.serialization", "_get_layout", "torch.strided")
    type(properties).__getstate__ = lambda _: (dtype, layout, False, Call(METADATA, "_MEM_FORMAT_ENCODING", 0), False)
    sizes = lambda *numbers: Call("torch", "Size", numbers)
    state, storage = {"step": stand_in(METADATA, "BytesStorageMetadata")()}, {}
    for number in range(tensors):
        name = f"model.w{number}"
        state[name] = entry(properties=properties, size=sizes(rows, columns), chunks=[
            chunk(offsets=sizes(rank * rows // ranks, 0), sizes=sizes(rows // ranks, columns)) for rank in range(ranks)])
        for rank in range(ranks):
            key = index(fqn=name, offset=sizes(rank * rows // ranks, 0), index=rank)
            storage[key] = info(relative_path=f"__{rank}_0.distcp", offset=number * length, length=length)
    whole = stand_in(METADATA, "Metadata")(state_dict_metadata=state, planner_data=None, storage_data=storage,
                                            storage_meta=None, version="1.0.0")
    with open(f"{folder}/.metadata", "wb") as file:
        file.write(pickled(whole))


if __name__ == "__main__":
    main()
