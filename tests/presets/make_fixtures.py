"""Writes fixtures/: what the transformers library says about each family that has a preset.

usage: make_fixtures.py [FAMILY...]          needs torch, transformers, numpy and safetensors; none of them to run the tests

Per family: a tiny model from its config class, saved by save_pretrained; its config.json; the name, dtype and shape of
every tensor in the file; and per mesh what each rank keeps of each tensor, cut in numpy as the family's own code takes
the tensor apart (families.py, expert_families.py). Nothing here knows shardtool's presets: the tests compare the two.

A fixture's "tensors" are in the order of their rows: "layers.{0,1}.q" are two. Its "parts" are parts of tensors: per axis
"*" (all of it) or intervals "0-4+8-12" in local order. Its "meshes" have "kept": distinct cuts, each the numbers of all
ranks' parts, "." where the tensor is not there; and "cut": the cut of every tensor. In both "3-5" stands for 3 4 5, and
"3*2" for 3 3. "refused" maps a mesh to an error.
"""

import argparse
import json
import pathlib
import re
import tempfile

import numpy as np
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import compressed_families
import default_families
import encoder_families
import expert_families
import families
import further_families
import later_families
import library_order
import mixed_families
import newest_families
import recent_families
from slicing import intervals, key_heads, on_every_device, query_heads, ranks_of, whole

FOLDER = pathlib.Path(__file__).parent / "fixtures"
# Keys of a config that only concern generation, training and its own class.
NOISE = {
    "id2label",
    "label2id",
    "_name_or_path",
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    "problem_type",
    "chunk_size_feed_forward",
}


def all_families():
    for table in (
        families.dense,
        families.generative,
        families.encoders,
        expert_families.mixtures,
        expert_families.state_spaces,
        expert_families.linear_attention,
        expert_families.multimodal,
        default_families.defaults,
        recent_families.dense,
        recent_families.two_kinds_of_heads,
        recent_families.mixtures,
        recent_families.hybrids,
        recent_families.multimodal,
        further_families.dense,
        further_families.mixtures,
        further_families.hybrids,
        further_families.generative,
        further_families.encoders,
        further_families.multimodal,
        mixed_families.mixtures,
        mixed_families.hybrids,
        later_families.dense,
        later_families.mixtures,
        later_families.hybrids,
        later_families.without_graphs,
        newest_families.mixtures,
        newest_families.hybrids,
        newest_families.encoders,
        newest_families.multimodal,
        newest_families.without_graphs,
        compressed_families.compressing,
        encoder_families.encoders,
        encoder_families.translators,
        encoder_families.generative,
    ):
        yield from table()


def build(family):
    config = getattr(transformers, family.config)(**family.sizes)
    if family.config == "DbrxConfig":
        config.attn_config.rope_theta = 10000.0  # the attention reads it, and the config class no longer sets it
    torch.set_default_dtype(torch.bfloat16)
    return getattr(transformers, family.model)(config)


def saved(family, model):
    """config.json and [name, dtype, shape] as a checkpoint of the family has them."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, save_original_format=not family.stacked)
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
        if family.renamed:
            check_renamed(family, model, folder)
        with safe_open(pathlib.Path(folder) / "model.safetensors", "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}
            tensors = [[name, part.get_dtype(), list(part.get_shape())] for name, part in sorted(slices.items())]
    tensors = sorted([renamed(family, name), *rest] for name, *rest in tensors)
    tensors = [turned(family, *tensor) for tensor in tensors]
    if family.published:
        tensors = sorted(tensors + family.published(tensors))
    return without(family.says(config) if family.says else config, family.leave_out), tensors


def renamed(family, name):
    for pattern, replacement in family.renamed:
        name = re.sub(pattern, replacement, name)
    return name


def check_renamed(family, model, folder):
    """Checks that the library finds every tensor under the published name."""
    path = pathlib.Path(folder) / "model.safetensors"
    save_file({renamed(family, name): tensor for name, tensor in load_file(path).items()}, path, {"format": "pt"})
    found, report = type(model).from_pretrained(folder, output_loading_info=True, dtype=torch.bfloat16)
    wrong = [name for name, tensor in found.state_dict().items() if not torch.equal(tensor, model.state_dict()[name])]
    if wrong or any(report.values()):
        raise SystemExit(f"{family.name}: {wrong} {report}")


def turned(family, name, dtype, shape):
    return [name, dtype, shape[:-2] + shape[:-3:-1] if re.fullmatch(family.transposed, name) else shape]


def without(config, paths):
    def clean(value):
        return (
            {key: clean(member) for key, member in value.items() if key not in NOISE}
            if isinstance(value, dict)
            else value
        )

    config = clean(config)
    for path in paths:
        *parents, key = path.split(".")
        owner = config
        for parent in parents:
            owner = owner[parent]
        del owner[key]
    return config


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
            return int(head["head"]) in heads(rank, families.HEADS, families.KV)
        return not expert or int(expert["expert"]) in rank.part(self.family.experts, "ep")

    def kept(self, rank, name, shape):
        """Indices per axis, or None where the tensor is not on this rank."""
        axes = self.selectors(name)
        if axes == [on_every_device]:
            axes = axes * len(shape)
        if len(axes) != len(shape):
            raise SystemExit(f"{self.family.name}: {name} {shape} and {len(axes)} selectors")
        if not self.is_here(rank, name):
            return None
        return [selector(rank, size) for selector, size in zip(axes, shape)]


def covers(cut, shape):
    """Returns True if the ranks together keep every element."""
    seen = np.zeros(shape, dtype=bool)
    for axes in cut:
        if axes is not None:
            seen[np.ix_(*axes)] = True
    return bool(seen.all())


def compact(axes, shape):
    """A part as text: per axis "*" for all of it, or intervals "0-4+8-12" in local order; None where it is not there."""
    if axes is None:
        return None
    return " ".join(
        "*" if np.array_equal(kept, whole(None, size)) else "+".join(f"{first}-{end}" for first, end in intervals(kept))
        for kept, size in zip(axes, shape)
    )


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


def grouped(rows):
    """Rows whose names differ in one number become one row: "layers.{0,1}.q". First layers, then experts."""
    for place in range(2):
        groups = {}
        for name, *rest in rows:
            numbers = list(re.finditer(r"(?<=\.)(\d+|\{[\d,]+\})(?=\.)", name))
            found = numbers[place] if len(numbers) > place else None
            pattern = (name[: found.start()], name[found.end() :]) if found else (name,)
            groups.setdefault((pattern, json.dumps(rest)), []).append(found[1] if found else "")
        rows = [
            [(numbers[0] if len(numbers) == 1 else "{" + ",".join(numbers) + "}").join(pattern), *json.loads(rest)]
            for (pattern, rest), numbers in groups.items()
        ]
    return rows


def expanded(name):
    found = re.search(r"\{([\d,]+)\}", name)
    if not found:
        return [name]
    names = [name[: found.start()] + number + name[found.end() :] for number in found[1].split(",")]
    return [one for name in names for one in expanded(name)]


def on_mesh(cuts, mesh, rows, parts):
    distinct, chosen = {}, []
    for pattern, _, shape in rows:
        for name in expanded(pattern):
            cut = [cuts.kept(rank, name, shape) for rank in ranks_of(mesh)]
            if not covers(cut, shape):
                raise SystemExit(f"{cuts.family.name} {mesh}: {name} is not covered")
            texts = [compact(axes, shape) for axes in cut]
            text = runs([None if text is None else parts.setdefault(text, len(parts)) for text in texts])
            chosen.append(distinct.setdefault(text, len(distinct)))
    return {"mesh": mesh, "cut": runs(chosen), "kept": list(distinct)}


def form(family):
    text = "as the library holds it (save_original_format=False)" if family.stacked else "as save_pretrained writes it"
    if family.published:
        text += (
            "; with tensors of published checkpoints that the library ignores, in the shapes of the layers that it has"
        )
    if family.renamed:
        text += "; with the names of published checkpoints, which it loads and does not write"
    if family.transposed:
        text += "; the experts' kernels transposed, as in published checkpoints"
    return text


def fixture(family):
    model = build(family)
    config, tensors = saved(family, model)
    cuts = Cuts(family)
    if compared := library_order.check(family, model, cuts.kept):
        print(f"{family.name}: {compared} parts are what the library's own method gives their heads")
    reduced = [name for name, _, _ in tensors if any(re.fullmatch(pattern, name) for pattern in family.reduced)]
    parts, rows = {}, grouped(tensors)
    meshes = [on_mesh(cuts, mesh, rows, parts) for mesh in family.meshes]
    return {
        "family": family.name,
        "reference": f"transformers {transformers.__version__}",
        "preset": family.preset,
        "model": family.model,
        "form": form(family),
        "left_out_of_config": list(family.leave_out),
        "config": config,
        "tensors": rows,
        "after_reduction": reduced,
        "parts": list(parts),
        "meshes": meshes,
        "refused": family.refused,
    }


def write(path, value):
    """One line per tensor, per mesh and per member."""

    def line(member):
        return json.dumps(member, separators=(",", ":"))

    def rows(members, indent):
        return "[\n" + ",\n".join(" " * indent + line(member) for member in members) + "\n" + " " * (indent - 1) + "]"

    meshes = ",\n".join(
        f'  {{"mesh": {line(mesh["mesh"])}, "cut": {line(mesh["cut"])}, "kept": {line(mesh["kept"])}}}'
        for mesh in value["meshes"]
    )
    members = {key: line(member) for key, member in value.items()}
    members.update(tensors=rows(value["tensors"], 2), meshes="[\n" + meshes + "\n ]")
    path.write_text("{\n" + ",\n".join(f' "{key}": {text}' for key, text in members.items()) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", nargs="*")
    wanted = parser.parse_args().family
    FOLDER.mkdir(exist_ok=True)
    for family in all_families():
        if wanted and family.name not in wanted:
            continue
        made = fixture(family)
        write(FOLDER / f"{family.name}.json", made)
        print(f"{family.name}: {len(made['meshes'])} meshes")


if __name__ == "__main__":
    main()
