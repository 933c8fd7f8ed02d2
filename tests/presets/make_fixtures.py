"""Writes fixtures/: what the transformers library says about each family that has a preset.

usage: make_fixtures.py [FAMILY...]          needs torch, transformers and safetensors; the tests need none of them

Per family: a tiny model from its config class, saved by save_pretrained; its config.json; and the name, dtype and shape
of every tensor in the file. The tables *_families.py say how the family's own code takes the tensors apart; cuts.py
computes from them what each rank keeps, during the build. "refused" maps a mesh to an error.
"""

import argparse
import json
import pathlib
import re
import tempfile

import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import library_order
from cuts import Cuts, all_families, cut

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
    if compared := library_order.check(family, model, Cuts(family).kept):
        print(f"{family.name}: {compared} parts are what the library's own method gives their heads")
    reduced = [name for name, _, _ in tensors if any(re.fullmatch(pattern, name) for pattern in family.reduced)]
    made = {
        "family": family.name,
        "reference": f"transformers {transformers.__version__}",
        "preset": family.preset,
        "model": family.model,
        "form": form(family),
        "left_out_of_config": list(family.leave_out),
        "config": config,
        "tensors": grouped(tensors),
        "after_reduction": reduced,
        "refused": family.refused,
    }
    cut(family, made)  # refuses tensors without a cut, and cuts that lose elements
    return made


def write(path, value):
    """One line per tensor and per member."""

    def line(member):
        return json.dumps(member, separators=(",", ":"))

    members = {key: line(member) for key, member in value.items()}
    members["tensors"] = "[\n" + ",\n".join("  " + line(row) for row in value["tensors"]) + "\n ]"
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
        print(f"{family.name}: {len(made['tensors'])} rows of tensors")


if __name__ == "__main__":
    main()
