"""Parts of one axis that the ranks of a mesh keep, by splitting and joining lists of indices alone.

A selector is a function (rank, n) -> the global indices of an axis of n elements that the rank keeps, in local order.
It takes the indices 0 .. n-1 apart as the model's own code takes the axis apart, keeps the rank's heads, groups,
experts or features, and puts the pieces back in the same order.
"""

import itertools
from dataclasses import dataclass


def rows_of(indices, rows):
    """reshape(rows, -1)"""
    width, rest = divmod(len(indices), rows)
    assert rest == 0, (len(indices), rows)
    return [indices[width * row : width * (row + 1)] for row in range(rows)]


def split(indices, sizes):
    """split(axis, sizes)"""
    assert sum(sizes) == len(indices), (sizes, len(indices))
    ends = list(itertools.accumulate(sizes))
    return [indices[end - size : end] for size, end in zip(sizes, ends)]


def joined(pieces):
    return list(itertools.chain.from_iterable(pieces))


@dataclass(frozen=True)
class Rank:
    """Coordinates of one device, (index, size) per mesh axis; an axis that the mesh lacks counts 1."""

    coordinates: dict

    def along(self, axis):
        return self.coordinates.get(axis, (0, 1))

    def part(self, n, axis="tp"):
        """The rank's part of n units: the first ones get one more."""
        index, size = self.along(axis)
        whole_units, more = divmod(n, size)
        begin = index * whole_units + min(index, more)
        return range(begin, begin + whole_units + (index < more))


def ranks_of(mesh):
    """The ranks of "ep=2,tp=4", row-major."""
    axes = [(name, int(size)) for name, size in (entry.split("=") for entry in mesh.split(","))]
    for indices in itertools.product(*(range(size) for _, size in axes)):
        yield Rank({name: (index, size) for (name, size), index in zip(axes, indices)})


def query_heads(rank, heads, kv):
    """Whole groups of query heads while there are KV heads for every rank, equal runs of query heads beyond that."""
    index, size = rank.along("tp")
    if size <= kv:
        groups = rows_of(range(heads), kv)
        return joined(groups[group] for group in rank.part(kv))
    return list(rows_of(range(heads), size)[index])


def key_heads(rank, heads, kv):
    """The KV heads that the rank's query heads attend to."""
    return sorted({head // (heads // kv) for head in query_heads(rank, heads, kv)})


# Selectors of axes that are not fused.


def whole(_rank, n):
    return range(n)


def on_every_device(_rank, n):
    """All of a tensor, however many axes it has: the only selector of a rule."""
    return range(n)


def features(rank, n):
    """Rows of a vocabulary, of an MLP, of experts that are stacked by the size of the axis."""
    return rank.part(n)


def experts(rank, n):
    return rank.part(n, "ep")


def q_rows(heads, kv):
    """heads x d rows, a head at a time."""
    return in_groups(heads, None, lambda rank: query_heads(rank, heads, kv))


def kv_rows(heads, kv):
    return in_groups(kv, None, lambda rank: key_heads(rank, heads, kv))


# Selectors of fused axes.


def side_by_side(*sections):
    """split(axis, sizes): sections (size, selector) one after the other."""

    def select(rank, n):
        parts = split(range(n), [size for size, _ in sections])
        return joined([part[i] for i in selector(rank, len(part))] for part, (_, selector) in zip(parts, sections))

    return select


def in_groups(groups, rows, kept):
    """view(groups, rows ...).split(rows): the pieces of each group side by side; kept(rank) says which groups.

    None for rows is one piece.
    """

    def select(rank, n):
        by_group = rows_of(range(n), groups)
        pieces = [split(group, rows or [n // groups]) for group in by_group]
        return joined(joined(pieces[group]) for group in kept(rank))

    return select


def in_turns(rank, n):
    """[..., ::2] and [..., 1::2]: gate and up of a feature next to each other."""
    gate, up = range(n)[::2], range(n)[1::2]
    return joined((gate[feature], up[feature]) for feature in rank.part(n // 2))


def two_halves(rank, n):
    """chunk(2): all gates, then all ups."""
    return side_by_side((n // 2, features), (n // 2, features))(rank, n)


def stacked_rows(expert_count):
    """view(experts, ffn, ...): experts over ep and the features of each over tp."""

    def select(rank, n):
        by_expert = rows_of(range(n), expert_count)
        kept = rank.part(n // expert_count)
        return joined(by_expert[expert][kept.start : kept.stop] for expert in rank.part(expert_count, "ep"))

    return select


def intervals(indices):
    """[begin, end) runs of the indices in their order."""
    runs = []
    for index in indices:
        if runs and runs[-1][1] == index:
            runs[-1][1] += 1
        else:
            runs.append([index, index + 1])
    return runs
