"""Cuts every family of fixtures/ as its own code takes the tensors apart.

usage: cuts.py FOLDER          needs the standard library alone; the build runs it

Reads config, tensors and meshes of every fixtures/NAME.json and writes FOLDER/NAME.json: the same, and per mesh what
each rank keeps of each tensor. Nothing here knows shardtool's presets: the tests compare the two.

"tensors" are in the order of their rows: "layers.{0,1}.q" are two. "parts" are parts of tensors: per axis "*" (all of
it) or intervals "0-4+8-12" in local order. "meshes" have "kept": distinct cuts, each the numbers of all ranks' parts,
"." where the tensor is not there; and "cut": the cut of every tensor. In both "3-5" stands for 3 4 5, and "3*2" for 3 3.
"""

import itertools
import json
import operator
import pathlib
import re
import sys

import dense_families
import encoder_families
import expert_families
import hybrid_families
import multimodal_families
import unrun_families
from family_parts import HEADS, KV
from slicing import intervals, key_heads, on_every_device, query_heads, ranks_of

FOLDER = pathlib.Path(__file__).parent / "fixtures"


def all_families():
    for table in (
        dense_families.plain,
        dense_families.fused,
        dense_families.defaults,
        dense_families.varied,
        dense_families.two_kinds_of_heads,
        dense_families.with_learned_activations,
        dense_families.fused_in_parts,
        dense_families.renamed,
        dense_families.fused_by_head,
        expert_families.plain,
        expert_families.latent_attention,
        expert_families.varied,
        expert_families.packed,
        expert_families.two_kinds_of_heads,
        expert_families.with_corrected_routers,
        expert_families.with_indexers,
        expert_families.compressing,
        hybrid_families.state_spaces,
        hybrid_families.linear_attention,
        hybrid_families.of_heads,
        hybrid_families.of_convolutions,
        hybrid_families.of_latent_attention,
        hybrid_families.varied,
        hybrid_families.of_windows,
        encoder_families.plain,
        encoder_families.of_text,
        encoder_families.multilingual,
        encoder_families.varied,
        encoder_families.translators,
        multimodal_families.kimi,
        multimodal_families.plain,
        multimodal_families.mistral3,
        multimodal_families.with_pixtral,
        multimodal_families.with_clip,
        multimodal_families.of_windows,
        unrun_families.text,
        unrun_families.images,
    ):
        yield from table()


class Cuts:
    """A family's table: the selectors and numbers of a tensor by its name."""

    # A vision tower, what layers share and layers for further tokens that are named apart are on every stage of
    # the pipeline.
    LAYER = re.compile(r"(?!.*vis(ual|ion)|.*shared_transformer|.*relative_attention_bias|(model\.)?mtp\.).*?\b(layers|h|blocks|block|layer)\.(?P<layer>\d+)\..*")
    EXPERT = re.compile(r".*\bexperts\.(?P<expert>\d+)\..*")
    HEAD = re.compile(r".*\b(?P<of>[qk])_layernorm\.norms\.(?P<head>\d+)\..*")

    def __init__(self, family):
        self.family = family
        self.rules = [(re.compile(pattern), axes) for pattern, *axes in family.cuts]

    def selectors(self, name):
        """Returns the selectors of the last rule that matches; a family's own rules follow those that it shares."""
        found = [axes for pattern, axes in self.rules if pattern.fullmatch(name)]
        if not found:
            raise SystemExit(f"{self.family.name}: no cut for {name}")
        return found[-1]

    def layers(self, name):
        return next(count for prefix, count in self.family.layers.items() if name.startswith(prefix))

    def is_here(self, rank, name):
        layer, expert = self.LAYER.fullmatch(name), self.EXPERT.fullmatch(name)
        if layer and int(layer["layer"]) not in rank.part(self.layers(name), "pp"):
            return False
        if head := self.HEAD.fullmatch(name):
            heads = query_heads if head["of"] == "q" else key_heads
            return int(head["head"]) in heads(rank, HEADS, KV)
        return not expert or int(expert["expert"]) in rank.part(self.family.experts, "ep")

    def kept(self, rank, name, shape):
        """Indices per axis, or None where the tensor is not on this rank."""
        if not self.is_here(rank, name):
            return None
        return [selector(rank, size) for selector, size in zip(self.of_axes(name, shape), shape)]

    def of_axes(self, name, shape):
        axes = self.selectors(name)
        if axes == [on_every_device]:
            axes = axes * len(shape)
        if len(axes) != len(shape):
            raise SystemExit(f"{self.family.name}: {name} {shape} and {len(axes)} selectors")
        return axes


def covers(boxes, shape):
    """Returns True if the boxes, a set of indices per axis, have every element."""
    if any(all(len(kept) == size for kept, size in zip(box, shape)) for box in boxes):
        return True
    # Only where an interval begins or ends can the boxes of a point change.
    edges = [{edge for box in boxes for run in intervals(sorted(box[axis])) for edge in run} for axis in range(len(shape))]
    points = itertools.product(*((axis | {0}) - {size} for axis, size in zip(edges, shape)))
    return all(any(all(map(operator.contains, box, point)) for box in boxes) for point in points)


class Parts:
    """The parts that ranks keep, each axis computed once per selector and size."""

    def __init__(self, cuts, ranks):
        self.cuts, self.ranks, self.known = cuts, ranks, {}

    def axis(self, selector, rank, size):
        """The text of an axis, and its indices."""
        key = selector, rank, size
        if key not in self.known:
            kept = list(selector(self.ranks[rank], size))
            is_whole = kept == list(range(size))
            text = "*" if is_whole else "+".join(f"{begin}-{end}" for begin, end in intervals(kept))
            self.known[key] = text, frozenset(kept)
        return self.known[key]

    def of(self, name, shape):
        """The text of each rank's part, None where the tensor is not there."""
        selectors, texts, boxes = self.cuts.of_axes(name, shape), [], {}
        for rank in range(len(self.ranks)):
            if not self.cuts.is_here(self.ranks[rank], name):
                texts.append(None)
                continue
            axes = [self.axis(selector, rank, size) for selector, size in zip(selectors, shape)]
            texts.append(" ".join(text for text, _ in axes))
            boxes[texts[-1]] = [kept for _, kept in axes]
        if not covers(list(boxes.values()), shape):
            raise SystemExit(f"{self.cuts.family.name}: {name} is not covered")
        return texts


def runs(ranks):
    """The parts of all ranks as text: "3-5" for 3, 4, 5, "3*2" for 3, 3, and "." for none."""
    words, at = [], 0
    while at < len(ranks):
        first = ranks[at]
        same = next((n for n, part in enumerate(ranks[at:]) if part != first), len(ranks) - at)
        rising = 1
        while first is not None and at + rising < len(ranks) and ranks[at + rising] == first + rising:
            rising += 1
        word = "." if first is None else str(first)
        words.append(f"{word}*{same}" if same > 1 else f"{word}-{first + rising - 1}" if rising > 1 else word)
        at += max(same, rising)
    return " ".join(words)


def expanded(name):
    found = re.search(r"\{([\d,]+)\}", name)
    if not found:
        return [name]
    names = [name[: found.start()] + number + name[found.end() :] for number in found[1].split(",")]
    return [one for name in names for one in expanded(name)]


def on_mesh(cuts, mesh, rows, numbers):
    """numbers: text of a part -> its number, added to."""
    parts, distinct, chosen = Parts(cuts, list(ranks_of(mesh))), {}, []
    for pattern, _, shape in rows:
        for name in expanded(pattern):
            texts = parts.of(name, shape)
            text = runs([None if text is None else numbers.setdefault(text, len(numbers)) for text in texts])
            chosen.append(distinct.setdefault(text, len(distinct)))
    return {"mesh": mesh, "cut": runs(chosen), "kept": list(distinct)}


def cut(family, fixture):
    cuts, numbers = Cuts(family), {}
    meshes = [on_mesh(cuts, mesh, fixture["tensors"], numbers) for mesh in family.meshes]
    return fixture | {"parts": list(numbers), "meshes": meshes}


def main(folder):
    families = {family.name: family for family in all_families()}
    folder.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob("*.json"):
        document = cut(families[path.stem], json.loads(path.read_text()))
        (folder / path.name).write_text(json.dumps(document))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
