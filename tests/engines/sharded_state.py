"""Compares what an engine loads from our files with what it makes of the unsharded model, or writes the golden tables.

usage: sharded_state.py check ENGINE SHARDTOOL [MODEL...]   splits small models and has the engine load the parts
       sharded_state.py tables ENGINE [MODEL...]            writes tests/layouts/golden/LAYOUT/MODEL.json

ENGINE is vllm or sglang. It is imported once; each rank of a load is a process of its own (forked_ranks.py).
A table has config.json and the tensors of a model, and per mesh and rank the dtype, shape and hash (the first half of
XXH3-128) of every parameter that the engine's own loader for unsharded models makes. Ranks after the first list what
differs from it: null for a parameter that they lack. The ordinary tests compare our files with the tables.
"""
import functools
import importlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import forked_ranks
import sharded_models

GOLDEN = pathlib.Path(__file__).parent.parent / "layouts" / "golden"
PLAIN = {"tp": 2, "pp": 1, "experts": "no"}
STAGES = {**PLAIN, "tp": 1, "pp": 2}
BOTH = {**PLAIN, "pp": 2}
# The label of the layout, and the meshes of every model.
ENGINES = {
    "vllm": ("vllm@0.32", {
        "llama": [PLAIN, {**PLAIN, "tp": 4}, {**PLAIN, "tp": 8}, STAGES],
        "llama_five_layers": [{**STAGES, "pp": 4}],
        "llama_tied": [PLAIN, {**PLAIN, "tp": 4}, STAGES, BOTH],
        "llama_fp8": [PLAIN],
        "llama_fp8_tensor": [PLAIN],
        "llama_float_quantized": [PLAIN],
        "llama_int_quantized": [PLAIN],
        "llama_nvfp4": [PLAIN],
        "llama_modelopt_fp8": [PLAIN],
        "llama_modelopt_nvfp4": [PLAIN],
        "qwen2": [PLAIN, STAGES],
        "qwen2_tied": [PLAIN, STAGES],
        "qwen2_float_quantized": [PLAIN],
        "qwen3": [PLAIN, BOTH],
        "qwen3_tied": [PLAIN, STAGES],
        "qwen3_fp8": [PLAIN],
        "mistral": [PLAIN, {**PLAIN, "tp": 8}, STAGES],
        "mistral_tied": [PLAIN, STAGES],
        "mistral_fp8_tensor": [PLAIN],
        "ministral3": [PLAIN, STAGES],
        "ministral3_tied": [PLAIN],
        "phi3": [PLAIN, STAGES],
        "phi3_tied": [PLAIN, STAGES],
        "granite": [PLAIN],
        "granite_tied": [PLAIN, STAGES],
        "glm": [PLAIN, BOTH],
        "glm4": [PLAIN, STAGES],
        "gemma": [PLAIN, STAGES],
        "gemma2": [PLAIN, STAGES],
        "cohere": [PLAIN, STAGES],
        "cohere2": [PLAIN, STAGES],
        "exaone4": [PLAIN, STAGES],
        "exaone4_tied": [PLAIN],
        "olmo2": [PLAIN, STAGES],
        "olmo3": [PLAIN, STAGES],
        "smollm3": [PLAIN, STAGES],
        "seed_oss": [PLAIN, STAGES],
        "starcoder2": [PLAIN, BOTH],
        "qwen3_moe": [PLAIN, {**PLAIN, "tp": 4}, {**PLAIN, "experts": "yes"}, STAGES],
        "qwen3_moe_fp8": [PLAIN, {**PLAIN, "experts": "yes"}],
        "mixtral": [PLAIN, {**PLAIN, "experts": "yes"}, {**PLAIN, "tp": 4, "experts": "yes"}, STAGES],
        "gemma3_text": [PLAIN, STAGES, BOTH],
        "gemma3": [PLAIN],
        "gemma3_held": [PLAIN],
        "qwen2_5_vl": [PLAIN],
        "qwen2_5_vl_held": [PLAIN],
        "qwen3_vl": [PLAIN],
        "qwen3_vl_tied": [PLAIN],
        "gpt_oss_mxfp4": [PLAIN, {**PLAIN, "experts": "yes"}],
        "deepseek_v3_fp8": [PLAIN, {**PLAIN, "experts": "yes"}],
        "deepseek_v3": [PLAIN, {**PLAIN, "experts": "yes"}, STAGES],
        "qwen2_moe": [PLAIN, {**PLAIN, "experts": "yes"}, STAGES],
        "qwen2_moe_dense_layer": [PLAIN],
        "deepseek_v2": [PLAIN, {**PLAIN, "experts": "yes"}, STAGES],
        "deepseek_v2_whole_queries": [PLAIN],
        "deepseek_v3_whole_queries": [PLAIN],
        "kimi_k2": [PLAIN, {**PLAIN, "experts": "yes"}, STAGES],
        "glm4_moe": [PLAIN, {**PLAIN, "experts": "yes"}, STAGES],
        "olmoe": [PLAIN, {**PLAIN, "experts": "yes"}, STAGES],
        "minimax_m2": [PLAIN, {**PLAIN, "tp": 8}, {**PLAIN, "experts": "yes"}, STAGES],
        "minimax_m2_fp8": [PLAIN, {**PLAIN, "experts": "yes"}],
        "ernie4_5_moe": [PLAIN, {**PLAIN, "experts": "yes"}, STAGES],
        "ernie4_5_moe_tied": [PLAIN],
        "granitemoe": [PLAIN, {**PLAIN, "experts": "yes"}, STAGES],
        "granitemoe_tied": [PLAIN, STAGES],
        "glm4_moe_lite": [PLAIN, {**PLAIN, "experts": "yes"}, STAGES],
        "qwen3_next": [PLAIN, {**PLAIN, "experts": "yes"}, STAGES],
    }),
    "sglang": ("sglang@0.5", {
        "llama": [PLAIN, {**PLAIN, "tp": 4}],
        "llama_tied": [PLAIN],
        "qwen2": [PLAIN, {**PLAIN, "tp": 4}],
        "qwen2_tied": [PLAIN],
        "qwen3": [PLAIN, {**PLAIN, "tp": 4}],
        "qwen3_tied": [PLAIN],
        "mistral": [PLAIN, {**PLAIN, "tp": 4}],
        "phi3": [PLAIN],
        "granite_tied": [PLAIN],
        "glm4": [PLAIN],
        "gemma3_text": [PLAIN],
        "olmo2": [PLAIN],
        "qwen3_moe": [PLAIN],
        "mixtral": [PLAIN],
        "qwen2_moe": [PLAIN],
    }),
}


def flags(mesh):
    axes = [f"{axis}={mesh[axis]}" for axis in ("pp", "tp") if mesh[axis] > 1]
    return ["--mesh", ",".join(axes)] + (["--axes", "expert_parallel"] if mesh["experts"] == "yes" else [])


def rank_module(engine):
    return importlib.import_module(f"{engine}_rank")


def load(engine, folder, load_format, mesh, saved=None):
    """Returns the parameters of every rank, which the engine saves in the folder `saved`, if that is not None.

    Raises with the last lines of the ranks that failed.
    """
    task = functools.partial(rank_module(engine).parameters, folder, load_format, mesh, saved)
    return forked_ranks.results(task, mesh["tp"] * mesh["pp"])


def name_of(mesh):
    return " ".join(flags(mesh)[1:])


def make_table(engine, model, config, tensors, scratch):
    layout, meshes = ENGINES[engine]
    sharded_models.write(scratch / model, config, tensors)
    table = {"layout": layout, "config": config, "tensors": tensors, "meshes": []}
    for mesh in meshes[model]:
        table["meshes"].append({"flags": flags(mesh), "ranks": load(engine, scratch / model, "auto", mesh)})
        print(f"made {layout} {model} {name_of(mesh)}", flush=True)
    folder = GOLDEN / layout
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{model}.json").write_text(to_text(table))


def differences(rank, first):
    """Returns the rows of a rank that differ from the first rank's; of the same type and shape, the hash alone."""
    rows = {name: row[2] if row[:2] == first.get(name, [])[:2] else row for name, row in rank.items() if first.get(name) != row}
    return {**rows, **{name: None for name in first if name not in rank}}


def to_text(table):
    """Formats with one tensor a line. Ranks have what differs from the first of their mesh, and that from the first mesh's."""
    lines = ['{"layout": ' + json.dumps(table["layout"]) + ',', '"config": ' + json.dumps(table["config"]) + ',',
             '"tensors": {']
    lines.append(",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(table["tensors"].items())))
    meshes = []
    base = {}
    for mesh in table["meshes"]:
        first, *others = mesh["ranks"]
        rows = [differences(first, base)] + [differences(rank, first) for rank in others]
        base = base or first
        ranks = ",\n".join("{" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(rank.items())) + "}"
                           for rank in rows)
        meshes.append('{"flags": ' + json.dumps(mesh["flags"]) + ', "ranks": [\n' + ranks + "]}")
    return "\n".join(lines) + '},\n"meshes": [\n' + ",\n".join(meshes) + "]}\n"


def write_as_published(model, table, folder):
    """Writes the model of a table, with those tensors in BF16 that the engine converts."""
    wide = sharded_models.HELD_WIDE.get(model, ())
    tensors = {name: ["BF16", row[1]] if name.endswith(wide) else row for name, row in table["tensors"].items()}
    sharded_models.write(folder, table["config"], tensors)


def compare(engine, program, source, parts, saved, mesh):
    """Splits a model, and returns what the engine loads from the parts and what it makes of the unsharded model and saves.

    The latter is loaded too, though the table has it for most models: the table is of the engine that made it, which may be
    another version than the one installed, and lacks what the engine converts.
    """
    subprocess.run([program, "split", source, "-o", parts, "--layout", ENGINES[engine][0], "--quiet", *flags(mesh)],
                   check=True, stdout=subprocess.DEVNULL)
    saved.mkdir()
    shutil.copy(source / "config.json", saved)
    return load(engine, parts, "sharded_state", mesh), load(engine, source, "auto", mesh, saved)


def merged_problem(engine, program, model, source, parts, saved):
    """Returns how the files that the engine saved differ from the model when they are merged; empty if they do not.

    Quantised models are left out: engines save their weights in another form. Names may be another spelling of the model's.
    """
    if "quantization_config" in json.loads((source / "config.json").read_text()):
        return ""
    merged = saved.with_name(f"{saved.name}-merged")
    done = subprocess.run([program, "merge", f"{engine}:{saved}", "-o", merged, "--quiet"], capture_output=True, text=True)
    if done.returncode:
        return f"\nthe files of the engine are not merged: {done.stderr}"
    dropped = json.loads((parts / "manifest.json").read_text())["dropped"]
    wide = sharded_models.HELD_WIDE.get(model, ())
    found, expected = (
        {name: row for name, row in sharded_models.read(folder / "model.safetensors").items()
         if name not in dropped and not name.endswith(wide)} for folder in (merged, source))
    if sorted(found.values()) == sorted(expected.values()):
        return ""
    return f"\nthe files of the engine merge to another model: {differing([found], [expected])}"


def check(engine, program, model, scratch):
    """Returns the number of meshes where the engine does not load the parts as the unsharded model, or saves another one."""
    layout, meshes = ENGINES[engine]
    write_as_published(model, json.loads((GOLDEN / layout / f"{model}.json").read_text()), scratch / model)
    failed = 0
    for number, mesh in enumerate(meshes[model]):
        parts, saved = scratch / f"{model}-{number}", scratch / f"{model}-{number}-saved"
        try:
            loaded, whole = compare(engine, program, scratch / model, parts, saved, mesh)
            problem = "" if loaded == whole else f"\n{differing(loaded, whole)}"
            problem += merged_problem(engine, program, model, scratch / model, parts, saved)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            problem = f"\n{error}"
        failed += bool(problem)
        verdict = problem or f": {sum(map(len, whole))} parameters"
        print(f"{'FAIL' if problem else 'PASS'} {layout} {model} {name_of(mesh)}{verdict}", flush=True)
    return failed


def differing(loaded, whole):
    return [(rank, name) for rank, (a, b) in enumerate(zip(loaded, whole)) for name in sorted(a.keys() | b.keys())
            if a.get(name) != b.get(name)][:5]


def describe(models):
    """Returns config.json and tensors of every model, in a process of its own: transformers starts threads.

    To be called before the engine is imported, which changes transformers.
    """
    task = lambda _folder, _rank: {model: sharded_models.describe(model) for model in models}
    return forked_ranks.results(task, 1)[0]


def main():
    mode, engine, *rest = sys.argv[1:]
    models = (rest if mode == "tables" else rest[1:]) or list(ENGINES[engine][1])
    described = describe(models) if mode == "tables" else {}
    rank_module(engine).prepare()
    failed = 0
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            if mode == "tables":
                make_table(engine, model, *described[model], pathlib.Path(folder))
            else:
                failed += check(engine, rest[0], model, pathlib.Path(folder))
    return min(1, failed)


if __name__ == "__main__":
    sys.exit(main())
