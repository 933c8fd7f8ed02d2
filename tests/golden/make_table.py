"""Writes MODELS.md: what `shardtool validate` finds of every golden model, as shards and against the transformers library.

usage: make_table.py BUILD_FOLDER           needs nothing but the programs that are built there
"""

import json
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent
MESH = "tp=2"

INTRODUCTION = """# Models that run

Every row is a small random model that the transformers library {version} wrote, with what that library computes from it in
f32. `shardtool split` cuts it by the preset for {mesh}, `shardtool validate` runs the shards and the whole model, layer by
layer: **f64** is the largest difference between the two, **f32** that between the whole model and the library at three
positions, both as a part of the RMS of the values compared (asked: 1e-4); in the field, where sums are exact, all are equal. **Bytes** is how
much of the checkpoint took part: what no prompt reaches (a pooler that nothing reads, a layer that is stored and not run)
did not. `python3 tests/golden/make_table.py build/release` writes this file.

| model | class | preset | graph | f64 | f32 | bytes |
|---|---|---|---|---|---|---|
"""


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def row(build, name, scratch):
    tool, whole, shards = build / "cli/shardtool", scratch / name, scratch / f"{name} shards"
    run(build / "tests/golden/golden_model", name, whole)
    preset = json.loads(run(tool, "inspect", whole, "--json"))["checkpoint"]["preset"]
    run(tool, "split", whole, "-o", shards, "--mesh", MESH, "-q")
    golden = FOLDER / "expected" / f"{name}.safetensors"
    report = json.loads(run(tool, "validate", shards, "-r", whole, "--golden", golden, "--json"))
    worst = {tier["name"]: tier["worst"] for tier in report["tiers"]}
    config = json.loads((whole / "config.json").read_text())
    coverage = report["coverage"]["fraction"]
    return (
        f"| {name} | {config['architectures'][0]} | {preset} | {report['family']} "
        f"| {worst['f64']:.1e} | {worst['golden']:.1e} | {100 * coverage:.0f} % |\n"
    )


def main():
    build = pathlib.Path(sys.argv[1])
    models = sorted((FOLDER / "models").glob("*.json"))
    version = json.loads(models[0].read_text())["reference"].split(",")[0].removeprefix("transformers ")
    with tempfile.TemporaryDirectory() as scratch:
        rows = [row(build, model.stem, pathlib.Path(scratch)) for model in models]
    text = INTRODUCTION.format(version=version, mesh=MESH) + "".join(rows)
    (FOLDER / "MODELS.md").write_text(text)


if __name__ == "__main__":
    main()
