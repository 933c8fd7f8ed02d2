"""Compares what an engine loads from our files with what it makes of the whole checkpoint, or writes the golden tables.

usage: sharded_state.py check SHARDTOOL [MODEL...]     splits small models and has vLLM load the parts
       sharded_state.py tables [MODEL...]              writes tests/layouts/golden/LAYOUT/MODEL.json

A table has config.json and the tensors of a model, and per mesh and rank the dtype, shape and XXH3-128 of every
parameter that the engine's own loader for whole checkpoints makes. The ordinary tests hold our files against it.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import sharded_models

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parent / "layouts" / "golden"
LAYOUT = "vllm@0.32"

PLAIN = {"tp": 2, "pp": 1, "experts": "no"}
MESHES = {
    "llama": [PLAIN, {**PLAIN, "tp": 8}, {**PLAIN, "tp": 1, "pp": 2}],
    "llama_tied": [PLAIN],
    "qwen2": [PLAIN],
    "qwen3": [{**PLAIN, "pp": 2}],
    "qwen3_moe": [PLAIN, {**PLAIN, "tp": 4}, {**PLAIN, "experts": "yes"}],
    "mixtral": [PLAIN, {**PLAIN, "experts": "yes"}],
    "gemma3_text": [PLAIN],
    "deepseek_v3": [PLAIN, {**PLAIN, "experts": "yes"}],
}


def flags(mesh):
    axes = [f"{axis}={mesh[axis]}" for axis in ("pp", "tp") if mesh[axis] > 1]
    return ["--mesh", ",".join(axes)] + (["--axes", "expert_parallel"] if mesh["experts"] == "yes" else [])


def load(folder, load_format, mesh):
    """Returns the parameters of every rank, or raises with the last lines of a rank that failed."""
    port = random.randint(20000, 40000)
    ranks = range(mesh["tp"] * mesh["pp"])
    running = [subprocess.Popen(
        [sys.executable, HERE / "vllm_rank.py", folder, load_format, str(mesh["tp"]), str(mesh["pp"]), mesh["experts"],
         str(rank), str(port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in ranks]
    texts = [process.communicate(timeout=600)[0] for process in running]
    parameters = []
    for text in texts:
        lines = [line for line in text.splitlines() if line.startswith("RESULT ")]
        if not lines:
            raise RuntimeError("\n".join(text.splitlines()[-12:]))
        parameters.append(json.loads(lines[-1].removeprefix("RESULT ")))
    return parameters


def name_of(mesh):
    return " ".join(flags(mesh)[1:])


def make_table(model, scratch):
    config, tensors = sharded_models.describe(model)
    sharded_models.write(scratch / model, config, tensors)
    table = {"layout": LAYOUT, "config": config, "tensors": tensors, "meshes": []}
    for mesh in MESHES[model]:
        table["meshes"].append({"flags": flags(mesh), "ranks": load(scratch / model, "auto", mesh)})
        print(f"made {model} {name_of(mesh)}", flush=True)
    folder = GOLDEN / LAYOUT
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{model}.json").write_text(to_text(table))


def to_text(table):
    """Formats with one tensor a line."""
    lines = ['{"layout": ' + json.dumps(table["layout"]) + ',', '"config": ' + json.dumps(table["config"]) + ',',
             '"tensors": {']
    lines.append(",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(table["tensors"].items())))
    meshes = []
    for mesh in table["meshes"]:
        ranks = ",\n".join("{" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(rank.items())) + "}"
                           for rank in mesh["ranks"])
        meshes.append('{"flags": ' + json.dumps(mesh["flags"]) + ', "ranks": [\n' + ranks + "]}")
    return "\n".join(lines) + '},\n"meshes": [\n' + ",\n".join(meshes) + "]}\n"


def check(program, model, scratch):
    """Returns the number of meshes whose parts the engine does not load as the whole checkpoint."""
    table = json.loads((GOLDEN / LAYOUT / f"{model}.json").read_text())
    sharded_models.write(scratch / model, table["config"], table["tensors"])
    failed = 0
    for number, mesh in enumerate(MESHES[model]):
        parts = scratch / f"{model}-{number}"
        subprocess.run([program, "split", scratch / model, "-o", parts, "--layout", LAYOUT, "--quiet", *flags(mesh)],
                       check=True, stdout=subprocess.DEVNULL)
        try:
            whole = load(scratch / model, "auto", mesh)
            loaded = load(parts, "sharded_state", mesh)
        except RuntimeError as error:
            loaded, whole = str(error), None
        if loaded == whole:
            print(f"PASS {LAYOUT} {model} {name_of(mesh)}: {sum(map(len, whole))} parameters", flush=True)
        else:
            failed += 1
            print(f"FAIL {LAYOUT} {model} {name_of(mesh)}\n{loaded if whole is None else differing(loaded, whole)}",
                  flush=True)
    return failed


def differing(loaded, whole):
    return [(rank, name) for rank, (a, b) in enumerate(zip(loaded, whole)) for name in sorted(a.keys() | b.keys())
            if a.get(name) != b.get(name)][:5]


def main():
    mode, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        if mode == "tables":
            for model in rest or MESHES:
                make_table(model, pathlib.Path(folder))
            return 0
        program, *models = rest
        return min(1, sum(check(program, model, pathlib.Path(folder)) for model in models or MESHES))


if __name__ == "__main__":
    sys.exit(main())
