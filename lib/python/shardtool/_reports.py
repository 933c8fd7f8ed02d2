"""Results of commands: the documents that `shardtool COMMAND --json` prints."""

import json
from collections.abc import Sequence
from typing import Any, Dict, List, NamedTuple, Tuple, Union, overload

from . import _core


class Report(dict):
    """A JSON object whose fields are attributes, too. The schemas of the command line describe them."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the report has no field {name!r}; it has {', '.join(self)}") from None

    @property
    def ok(self) -> bool:
        """False if the command found a difference or a finding (exit status 1)."""
        return self["status"] == "ok"

    def __bool__(self) -> bool:
        return True


def parse(text: str, cls: Any = Report) -> Any:
    """The report of a document."""
    fields = json.loads(text, object_hook=Report)
    return fields if cls is Report else cls(fields)


class Slice(NamedTuple):
    """Elements that lie side by side: target[s.dst] = source[s.src]. Of a layout the target is a rank's shard and the
    source the whole tensor; of a transfer they are the receiver's and the sender's shards."""

    dst: Tuple[slice, ...]
    src: Tuple[slice, ...]
    shape: Tuple[int, ...]


class Transfer(NamedTuple):
    """Bytes of one tensor that one rank sends to another. src_rank -1 are the files, whose shard is the whole tensor.
    Offsets are bytes from the begin of the sender's and the receiver's shard to the first element that is sent."""

    tensor: str
    src_rank: int
    dst_rank: int
    src_offset: int
    dst_offset: int
    bytes: int


class Transfers(Sequence[Transfer]):
    """The transfers of a plan: a sequence of Transfer. `numpy.asarray(p.transfers.rows)` is a structured array whose
    field `tensor` is an index into `tensors`."""

    def __init__(self, rows: _core.Transfers):
        self.rows = rows

    @property
    def tensors(self) -> List[str]:
        return self.rows.tensors

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, number: int) -> Transfer: ...
    @overload
    def __getitem__(self, number: slice) -> List[Transfer]: ...
    def __getitem__(self, number: Union[int, slice]) -> Union[Transfer, List[Transfer]]:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        return Transfer(*self.rows._row(number))

    def slices(self, number: int) -> List[Slice]:
        """The elements of transfer `number`: receiver[s.dst] = sender[s.src] for each Slice."""
        return [Slice(*fields) for fields in self.rows._boxes(number)]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy

        return numpy.array(memoryview(self.rows), dtype=dtype)


class Plan(Report):
    """The memory of every device and, with a destination, what has to move."""

    transfers: Transfers
    _arguments: Tuple[List[str], Dict[str, Any]]

    def to(self, program: str) -> Dict[str, Any]:
        """The plan as data for "dtensor", "nccl-m2n" or "mooncake", as `plan --emit` prints it. Reads the headers again.
        Raises InputError with the tensor's name for a layout that the program cannot express."""
        sources, keywords = self._arguments
        document: Dict[str, Any] = json.loads(_core.emit(sources, keywords, program))
        return document

    def _moved(self, name: str) -> Any:
        return self["reshard"][name] if "reshard" in self else 0

    @property
    def bytes_moved(self) -> int:
        """Bytes that ranks receive, from other ranks or from the files."""
        return self._moved("bytes_moved")

    @property
    def lower_bound(self) -> int:
        """Bytes that every plan has to move."""
        return self._moved("lower_bound")

    @property
    def gap(self) -> float:
        """bytes_moved / lower_bound - 1."""
        return self._moved("gap")
