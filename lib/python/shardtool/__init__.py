"""Reads checkpoints as ranks hold them, and cuts, merges, moves and proves them.

    import shardtool as st
    with st.open("out/tp8").rank(3, framework="pt") as f:
        tensor = f.get_tensor("model.norm.weight")

Every function is the command of the same name (`shardtool help COMMAND`) and returns the document that it prints with
--json. Sizes are bytes, paths are str or os.PathLike. `settings` are values of the mapping by their path, as --set takes
them: JSON, or text. An argument of another type or name raises TypeError, and a number that the command refuses UsageError.
"""

import collections.abc
import functools
import json
import operator
import os
from inspect import signature as _signature
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, TypeVar, Union, cast

from . import _core
from ._core import Rank, Tensor, TensorSlice, __version__
from ._errors import (
    Error, Inexpressible, InputError, InternalError, Interrupted, MappingError, OutputError, ResourceError, UsageError,
)
from ._reports import Plan, Report, Slice, Transfer, Transfers, parse as _parse

__all__ = [
    "Checkpoint", "Error", "Inexpressible", "InputError", "InternalError", "Interrupted", "Layout", "MappingError",
    "OutputError", "Plan", "Rank", "Report", "ResourceError", "Slice", "Tensor", "TensorInfo", "TensorSlice", "Transfer",
    "Transfers", "UsageError", "check", "diff", "finish", "inspect", "merge", "open", "plan", "reshard", "split", "validate",
]

Path = Union[str, "os.PathLike[str]"]
Mesh = Union[str, Mapping[str, int]]
Share = Union[str, Tuple[int, int]]
Progress = Callable[[int, int, str], Any]
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Layout:
    """The cut of one tensor over the ranks of a mesh."""

    def __init__(self, core: _core.Layout, whole_shape: Tuple[int, ...]):
        self._core = core
        self._whole_shape = whole_shape

    @property
    def mesh(self) -> Dict[str, int]:
        """Axes and their sizes, the slowest first; ranks are row-major unless the mapping has a device_order."""
        return self._core.mesh

    @property
    def ranks(self) -> List[int]:
        """The ranks that hold some of the tensor."""
        return self._core.ranks

    @property
    def rule(self) -> str:
        """The rule of the mapping that decided."""
        return self._core.rule

    def shape(self, rank: int) -> Tuple[int, ...]:
        """The shape of the rank's shard, padding included."""
        return self._core.shape(rank)

    def slices(self, rank: int) -> List[Slice]:
        """What the rank holds, as a list of Slice. Elements of the shard in no slice are padding."""
        return [Slice(*fields) for fields in self._core._slices(rank)]

    @property
    def placements(self) -> Tuple[Optional[int], ...]:
        """Per axis of the mesh the axis of the tensor that DTensor shards, or None where it replicates. Raises
        Inexpressible if DTensor has no such layout."""
        try:
            return self._core._placements()
        except InputError as error:
            inexpressible = Inexpressible(*error.args)
            inexpressible.__dict__.update(error.__dict__)
            raise inexpressible from None

    def to_dtensor(self, device_mesh: Any = None) -> Dict[str, Any]:
        """The arguments with which DTensor.from_local makes the whole tensor of every rank's shard:

            DTensor.from_local(shard, **layout.to_dtensor())

        Without a DeviceMesh one of CPUs is made over all processes, whose number is the mesh's; give one that
        init_device_mesh made where there are many tensors. Imports torch. Raises Inexpressible, and UsageError for a
        DeviceMesh of other sizes or without a process group."""
        placements = self.placements
        from ._dtensor import local_arguments

        return local_arguments(self.mesh, self._core._device_order, placements, self._whole_shape, device_mesh)


class TensorInfo:
    """A tensor of a checkpoint: its header, and its layout."""

    def __init__(self, core: _core.TensorHeader):
        self._core = core

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def dtype(self) -> str:
        """As safetensors writes it, "BF16"."""
        return self._core.dtype

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._core.shape

    @property
    def nbytes(self) -> int:
        return self._core.nbytes

    @property
    def layout(self) -> Layout:
        """Raises UsageError for a whole checkpoint that was opened without a mesh, a mapping or a preset."""
        return Layout(self._core._layout, self.shape)

    def __repr__(self) -> str:
        return f"TensorInfo({self.name!r}, {self.dtype}, {list(self.shape)})"


class Checkpoint:
    """An opened checkpoint. Its names are the model's own, whatever the files call them."""

    def __init__(self, core: _core.Checkpoint):
        self._core = core

    @property
    def path(self) -> str:
        return self._core.path

    @property
    def format(self) -> str:
        return self._core.format

    @property
    def mesh(self) -> Optional[Dict[str, int]]:
        """Axes and their sizes, the slowest first; None for a whole checkpoint."""
        return self._core.mesh or None

    @property
    def warnings(self) -> List[str]:
        return self._core.warnings

    def __len__(self) -> int:
        return len(self._core)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._core

    def __iter__(self) -> Iterator[str]:
        return iter(self._core)

    def keys(self) -> List[str]:
        return self._core.keys()

    def __getitem__(self, name: str) -> TensorInfo:
        return TensorInfo(self._core._header(name))

    def rank(self, rank: int, framework: Optional[str] = None) -> Rank:
        """What the rank holds, with the methods of safetensors.safe_open."""
        return self._core.rank(rank, framework)

    def get_tensor(self, name: str, framework: Optional[str] = None) -> Any:
        """The whole tensor, joined from the ranks' files where it is cut."""
        return self._core.get_tensor(name, framework)

    def get_slice(self, name: str, framework: Optional[str] = None) -> TensorSlice:
        """The whole tensor, of which a subscript reads a part."""
        return self._core.get_slice(name, framework)

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def __repr__(self) -> str:
        return f"Checkpoint({self.path!r}, {self.format}, {len(self)} tensors)"


def _wrong_type(name: str, wanted: str, value: Any) -> TypeError:
    return TypeError(f"{name} must be {wanted}, not {type(value).__name__}")


def _path(name: str, value: Path) -> str:
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str):
        raise _wrong_type(name, "str or os.PathLike", value)
    os.fsencode(path)  # raises UnicodeEncodeError for text that is no path
    if "\0" in path:
        raise ValueError(f"{name} has an embedded null character")
    return path


def _list(name: str, values: Iterable) -> list:
    if isinstance(values, (str, bytes, collections.abc.Mapping)) or not isinstance(values, collections.abc.Iterable):
        raise _wrong_type(name, "a list", values)
    return list(values)


def _paths(name: str, sources: Union[Path, Iterable[Path]]) -> list:
    if isinstance(sources, (str, os.PathLike)):
        return [_path(name, sources)]
    return [_path(f"{name}[{number}]", source) for number, source in enumerate(_list(name, sources))]


def _setting(path: str, value: Any) -> str:
    """The value as `--set` takes it: texts as they are, everything else as JSON."""
    def to_integer(part):
        try:
            return operator.index(part)
        except TypeError:
            raise TypeError(f"settings[{path!r}] must be a value of JSON, not {type(part).__name__}") from None

    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, default=to_integer, allow_nan=False)
    except ValueError as error:
        raise ValueError(f"settings[{path!r}]: {error}") from None


def _settings(name: str, settings: Mapping[str, Any]) -> dict:
    if not isinstance(settings, collections.abc.Mapping):
        raise _wrong_type(name, "dict", settings)
    return {path: _setting(path, value) for path, value in settings.items()}


def _mesh(_: str, mesh: Mesh) -> Any:
    return dict(mesh) if isinstance(mesh, collections.abc.Mapping) else mesh


_CONVERSIONS: Dict[str, Callable[[str, Any], Any]] = {
    "mapping": _path, "model_config": _path, "reference": _path, "verdicts": _path, "graph": _path, "golden": _path, "ranks": _list, "ignore": _list,
    "settings": _settings, "mesh": _mesh,
}


def _keywords(given: dict) -> dict:
    """Arguments for the extension, which takes texts, numbers, lists and dicts; without those that it takes by place."""
    by_place = ("source", "sources", "output", "a", "b", "progress")
    return {name: _CONVERSIONS[name](name, value) if name in _CONVERSIONS else value
            for name, value in given.items() if name not in by_place and value is not None}


def _with_hints(function: _Function) -> _Function:
    """The function, whose error for a misspelt argument names the one that is meant."""
    known = list(_signature(function).parameters)

    @functools.wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
        for name in keywords:
            if name not in known:
                hint = _core.did_you_mean(name, known)
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}" + (hint and ": " + hint))
        return function(*args, **keywords)

    return cast(_Function, called)


@_with_hints
def open(source: Union[Path, Iterable[Path]], *, mesh: Optional[Mesh] = None, mapping: Optional[Path] = None,
         preset: Optional[str] = None, axes: Optional[str] = None, model_config: Optional[Path] = None,
         settings: Optional[Mapping[str, Any]] = None) -> Checkpoint:
    """Opens a checkpoint, or the outputs of one split, and reads headers only. A whole checkpoint with a mesh, a mapping
    or a preset has ranks, whose shards are read without being written first."""
    return Checkpoint(_core.open(_paths("source", source), _keywords(locals())))


@_with_hints
def inspect(source: Path, *, filter: Optional[str] = None, mesh: Optional[Mesh] = None, mapping: Optional[Path] = None,
            preset: Optional[str] = None) -> Report:
    """Describes a checkpoint and its tensors."""
    return _parse(_core.inspect(_path("source", source), _keywords(locals())))


@_with_hints
def split(source: Path, output: Path, *, mesh: Optional[Mesh] = None, mapping: Optional[Path] = None,
          preset: Optional[str] = None, layout: Optional[str] = None, ranks: Optional[Iterable[int]] = None,
          axes: Optional[str] = None, model_config: Optional[Path] = None, settings: Optional[Mapping[str, Any]] = None,
          require_even: bool = False, allow_empty_shards: bool = False, dtype: Optional[str] = None,
          dequantize: bool = False, max_file_size: Optional[int] = None, max_memory: Optional[int] = None,
          threads: Optional[int] = None, force: bool = False, resume: bool = False, verify: bool = False,
          dry_run: bool = False, sha256: bool = False, copy_side_files: bool = True, share: Optional[Share] = None,
          progress: Optional[Progress] = None) -> Report:
    """Cuts a whole checkpoint into one part per rank. progress(bytes_done, bytes_total, tensor) is called on this thread;
    an exception that it raises ends the run, and `resume` continues it. share=(3, 8) or "3/8" moves one of 8 shares of the
    bytes, numbered from 0, and "auto" the one of this process in its scheduler's count: the share that ends last publishes the
    output, or `finish` does."""
    return _parse(_core.split(_path("source", source), _path("output", output), _keywords(locals()), progress))


@_with_hints
def merge(sources: Union[Path, Iterable[Path]], output: Path, *, model_config: Optional[Path] = None,
          compare_replicas: bool = True, layout: Optional[str] = None,
          dtype: Optional[str] = None, dequantize: bool = False, max_file_size: Optional[int] = None,
          max_memory: Optional[int] = None, threads: Optional[int] = None, force: bool = False, resume: bool = False,
          verify: bool = False, dry_run: bool = False, sha256: bool = False, copy_side_files: bool = True,
          share: Optional[Share] = None, progress: Optional[Progress] = None) -> Report:
    """Makes one checkpoint of shards: merge(split(x)) is x, byte for byte."""
    return _parse(_core.merge(_paths("sources", sources), _path("output", output), _keywords(locals()), progress))


@_with_hints
def reshard(sources: Union[Path, Iterable[Path]], output: Path, *, mesh: Optional[Mesh] = None,
            mapping: Optional[Path] = None, preset: Optional[str] = None, layout: Optional[str] = None,
            ranks: Optional[Iterable[int]] = None, axes: Optional[str] = None, model_config: Optional[Path] = None,
            settings: Optional[Mapping[str, Any]] = None, require_even: bool = False, allow_empty_shards: bool = False,
            compare_replicas: bool = True, dtype: Optional[str] = None, dequantize: bool = False,
            max_file_size: Optional[int] = None, max_memory: Optional[int] = None, threads: Optional[int] = None,
            force: bool = False, resume: bool = False, verify: bool = False, dry_run: bool = False, sha256: bool = False,
            copy_side_files: bool = True, share: Optional[Share] = None, progress: Optional[Progress] = None) -> Report:
    """Moves shards to another mesh or mapping, without a merged copy."""
    return _parse(_core.reshard(_paths("sources", sources), _path("output", output), _keywords(locals()), progress))


@_with_hints
def plan(source: Union[Path, Iterable[Path]], *, mesh: Optional[Mesh] = None, mapping: Optional[Path] = None,
         preset: Optional[str] = None, layout: Optional[str] = None, axes: Optional[str] = None,
         model_config: Optional[Path] = None, settings: Optional[Mapping[str, Any]] = None, budget: Optional[int] = None,
         context: Optional[int] = None, batch: Optional[int] = None) -> Plan:
    """Computes the memory of every rank and what has to move to get there: from the files of a whole checkpoint, or from
    the ranks of an output. A folder with config.json alone has the memory, and nothing that moves. layout="vllm" plans
    the cuts and the padding of that engine."""
    sources, keywords = _paths("source", source), _keywords(locals())
    document, rows = _core.plan(sources, keywords)
    result = _parse(document, Plan)
    vars(result).update(transfers=Transfers(rows), _arguments=(sources, keywords))
    return result


@_with_hints
def check(sources: Union[Path, Iterable[Path]], *, read_data: bool = False, profile: Optional[str] = None,
          ignore: Optional[Iterable[str]] = None, mesh: Optional[Mesh] = None,
          mapping: Optional[Path] = None, preset: Optional[str] = None, model_config: Optional[Path] = None,
          max_memory: Optional[int] = None, threads: Optional[int] = None, progress: Optional[Progress] = None) -> Report:
    """Looks for everything that is wrong with checkpoints. Problems are findings, not exceptions."""
    return _parse(_core.check(_paths("sources", sources), _keywords(locals()), progress))


@_with_hints
def validate(sources: Union[Path, Iterable[Path]], *, reference: Optional[Path] = None, mesh: Optional[Mesh] = None,
             mapping: Optional[Path] = None, preset: Optional[str] = None, axes: Optional[str] = None,
             model_config: Optional[Path] = None, graph: Optional[Path] = None, quick: bool = False,
             ordered: bool = False, native: bool = False, golden: Optional[Path] = None, values: bool = False,
             seed: Optional[int] = None, tokens: Optional[int] = None, require_coverage: Optional[float] = None,
             share: Optional[Share] = None, verdicts: Optional[Path] = None, max_memory: Optional[int] = None,
             threads: Optional[int] = None, progress: Optional[Progress] = None) -> Report:
    """Runs the model on the shards and whole, and compares. A difference is a report that is not `ok`, not an exception.

    It computes in exact arithmetic and in f64. `quick` leaves f64 out. `ordered` adds f32 and bf16 with the whole model
    summed as the shards, `native` the weights' own type, and `golden` holds the whole model against a file of results.
    `tokens` are those of the runs in floats, `seed` is that of the inputs. A share runs some of the layers and leaves its
    verdict in the folder `verdicts`; the one that ends last, and `finish(verdicts)`, report on all layers."""
    return _parse(_core.validate(_paths("sources", sources), _keywords(locals()), progress))


@_with_hints
def finish(output: Path, *, force: bool = False, verify: bool = False, max_memory: Optional[int] = None,
           threads: Optional[int] = None, progress: Optional[Progress] = None) -> Report:
    """Publishes an output whose shares have all ended, or reports on all layers from a folder of verdicts."""
    return _parse(_core.finish(_path("output", output), _keywords(locals()), progress))


@_with_hints
def diff(a: Path, b: Path, *, metadata_only: bool = False, values: bool = False, max_memory: Optional[int] = None,
         threads: Optional[int] = None, progress: Optional[Progress] = None) -> Report:
    """Compares two checkpoints, each whole or sharded in any layout."""
    return _parse(_core.diff(_path("a", a), _path("b", b), _keywords(locals()), progress))
