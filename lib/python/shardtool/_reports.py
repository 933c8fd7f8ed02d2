"""Results of commands: the documents that `shardtool COMMAND --json` prints."""

import json
from typing import Any, Iterator, NamedTuple


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


def parse(text: str, cls=Report):
    """The report of a document."""
    fields = json.loads(text, object_hook=Report)
    return fields if cls is Report else cls(fields)


class Transfer(NamedTuple):
    """Bytes of one tensor that one rank sends to another. src_rank -1 are the files."""

    tensor: str
    src_rank: int
    dst_rank: int
    bytes: int


class Transfers:
    """The transfers of a plan: a sequence of Transfer. `numpy.asarray(p.transfers.rows)` is a structured array whose
    field `tensor` is an index into `tensors`."""

    def __init__(self, rows):
        self.rows = rows

    @property
    def tensors(self) -> list:
        return self.rows.tensors

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> Transfer:
        return Transfer(*self.rows._row(number))

    def __iter__(self) -> Iterator[Transfer]:
        return (self[number] for number in range(len(self)))

    def __array__(self, dtype=None, copy=None):
        import numpy

        return numpy.array(memoryview(self.rows), dtype=dtype)


class Plan(Report):
    """The memory of every device and, with a destination, what has to move."""

    transfers: Transfers

    def _moved(self, name: str) -> int:
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
