"""Parts of one axis that the ranks of a mesh keep, by numpy's reshape, split and concatenate alone.

A selector is a function (rank, n) -> the global indices of an axis of n elements that the rank keeps, in local order.
It takes the indices 0 .. n-1 apart as the model's own code takes the axis apart, keeps the rank's heads, groups,
experts or features, and puts the pieces back in the same order.
"""

import itertools
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Rank:
    """Coordinates of one device, (index, size) per mesh axis; an axis that the mesh lacks counts 1."""

    coordinates: dict

    def along(self, axis):
        return self.coordinates.get(axis, (0, 1))

    def part(self, n, axis="tp"):
        """The rank's part of n units: the first ones get one more."""
        index, size = self.along(axis)
        return np.array_split(np.arange(n), size)[index]


def ranks_of(mesh):
    """The ranks of "ep=2,tp=4", row-major."""
    axes = [(name, int(size)) for name, size in (entry.split("=") for entry in mesh.split(","))]
    for indices in itertools.product(*(range(size) for _, size in axes)):
        yield Rank({name: (index, size) for (name, size), index in zip(axes, indices)})


def query_heads(rank, heads, kv):
    """Whole groups of query heads while there are KV heads for every rank, equal runs of query heads beyond that."""
    index, size = rank.along("tp")
    if size <= kv:
        return np.arange(heads).reshape(kv, heads // kv)[rank.part(kv)].ravel()
    return np.split(np.arange(heads), size)[index]


def key_heads(rank, heads, kv):
    """The KV heads that the rank's query heads attend to."""
    return np.unique(query_heads(rank, heads, kv) // (heads // kv))


# Selectors of axes that are not fused.


def whole(_rank, n):
    return np.arange(n)


def on_every_device(_rank, n):
    """All of a tensor, however many axes it has: the only selector of a rule."""
    return np.arange(n)


def features(rank, n):
    """Rows of a vocabulary, of an MLP, of experts that are stacked by the size of the axis."""
    return rank.part(n)


def experts(rank, n):
    return rank.part(n, "ep")


def q_rows(heads, kv):
    """heads x d rows, a head at a time."""
    return lambda rank, n: np.arange(n).reshape(heads, -1)[query_heads(rank, heads, kv)].ravel()


def kv_rows(heads, kv):
    return lambda rank, n: np.arange(n).reshape(kv, -1)[key_heads(rank, heads, kv)].ravel()


# Selectors of fused axes.


def side_by_side(*sections):
    """split(axis, sizes): sections (size, selector) one after the other."""

    def select(rank, n):
        sizes = [size for size, _ in sections]
        assert sum(sizes) == n, (sizes, n)
        parts = np.split(np.arange(n), np.cumsum(sizes)[:-1])
        return np.concatenate([part[selector(rank, len(part))] for part, (_, selector) in zip(parts, sections)])

    return select


def in_groups(groups, rows, kept):
    """view(groups, rows ...).split(rows): the pieces of each group side by side; kept(rank) says which groups."""

    def select(rank, n):
        index = np.arange(n).reshape(groups, -1)
        pieces = np.split(index, np.cumsum(rows)[:-1], axis=1)
        assert sum(rows) == index.shape[1], (rows, index.shape)
        return np.concatenate([piece[kept(rank)] for piece in pieces], axis=1).ravel()

    return select


def in_turns(rank, n):
    """[..., ::2] and [..., 1::2]: gate and up of a feature next to each other."""
    gate, up = np.arange(n)[::2], np.arange(n)[1::2]
    kept = rank.part(n // 2)
    return np.stack([gate[kept], up[kept]], axis=1).ravel()


def two_halves(rank, n):
    """chunk(2): all gates, then all ups."""
    return side_by_side((n // 2, features), (n // 2, features))(rank, n)


def stacked_rows(expert_count):
    """view(experts, ffn, ...): experts over ep and the features of each over tp."""

    def select(rank, n):
        index = np.arange(n).reshape(expert_count, -1)[rank.part(expert_count, "ep")]
        return index[:, rank.part(n // expert_count)].ravel()

    return select


def intervals(indices):
    """[begin, end) runs of the indices in their order."""
    breaks = np.flatnonzero(np.diff(indices) != 1) + 1
    return [[int(run[0]), int(run[-1]) + 1] for run in np.split(indices, breaks) if len(run)]
