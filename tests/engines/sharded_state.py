"""Compares what an engine loads from our files with what it makes of the whole checkpoint, or writes the golden tables.

usage: sharded_state.py check ENGINE SHARDTOOL [MODEL...]   splits small models and has the engine load the parts
       sharded_state.py tables ENGINE [MODEL...]            writes tests/layouts/golden/LAYOUT/MODEL.json

ENGINE is vllm or sglang.
A table has config.json and the tensors of a model, and per mesh and rank the dtype, shape and hash (the first half of
XXH3-128) of every parameter that the engine's own loader for whole checkpoints makes. Ranks after the first list what
differs from it: null for a parameter that they lack. The ordinary tests compare our files with the tables.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import sharded_models

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parent / "layouts" / "golden"
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


def free_port():
    """Returns a port that nothing listens on, below the range from which the kernel gives ports to connections."""
    for port in range(20000, 32768):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
                return port
            except OSError:
                pass
    raise RuntimeError("no port from 20000 to 32767 is free")


def wait_for_all(running):
    """Waits for every rank. When one fails, or after ten minutes, ends the others: they would wait for it."""
    end = time.monotonic() + 600
    while any(process.poll() is None for process in running):
        if any(process.poll() for process in running) or time.monotonic() > end:
            for process in running:
                process.kill()
        time.sleep(0.1)


def load(engine, folder, load_format, mesh):
    """Returns the parameters of every rank, or raises with the last lines of the ranks that failed."""
    port = free_port()
    name = f"shardtool-{os.getpid()}-{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory() as logs:
        texts = [pathlib.Path(logs) / str(rank) for rank in range(mesh["tp"] * mesh["pp"])]
        running = []
        for rank, text in enumerate(texts):
            with text.open("w") as log:
                running.append(subprocess.Popen(
                    [sys.executable, HERE / f"{engine}_rank.py", folder, load_format, str(mesh["tp"]), str(mesh["pp"]),
                     mesh["experts"], str(rank), str(port)], stdout=log, stderr=subprocess.STDOUT,
                    env={**os.environ, "VLLM_DIST_IDENT": name}))
        wait_for_all(running)
        for left in pathlib.Path("/dev/shm").glob(f"{name}-*"):  # vLLM keeps its shared memory, and refuses what is there
            left.unlink()
        lines = [text.read_text().splitlines() for text in texts]
    results = [[line for line in text if line.startswith("RESULT ")] for text in lines]
    if not all(results):
        raise RuntimeError("\n".join(f"rank {rank} ended with status {process.returncode}\n" + "\n".join(text[-12:])
                                     for rank, (process, text) in enumerate(zip(running, lines)) if not results[rank]))
    return [json.loads(rank[-1].removeprefix("RESULT ")) for rank in results]


def name_of(mesh):
    return " ".join(flags(mesh)[1:])


def make_table(engine, model, scratch):
    layout, meshes = ENGINES[engine]
    config, tensors = sharded_models.describe(model)
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


def check(engine, program, model, scratch):
    """Returns the number of meshes whose parts the engine does not load as the whole checkpoint."""
    layout, meshes = ENGINES[engine]
    table = json.loads((GOLDEN / layout / f"{model}.json").read_text())
    config, tensors = table["config"], table["tensors"]
    wide = sharded_models.HELD_WIDE.get(model, ())
    tensors = {name: ["BF16", row[1]] if name.endswith(wide) else row for name, row in tensors.items()}
    sharded_models.write(scratch / model, config, tensors)
    failed = 0
    for number, mesh in enumerate(meshes[model]):
        parts = scratch / f"{model}-{number}"
        subprocess.run([program, "split", scratch / model, "-o", parts, "--layout", layout, "--quiet", *flags(mesh)],
                       check=True, stdout=subprocess.DEVNULL)
        try:
            whole = load(engine, scratch / model, "auto", mesh)
            loaded = load(engine, parts, "sharded_state", mesh)
        except RuntimeError as error:
            loaded, whole = str(error), None
        if loaded == whole:
            print(f"PASS {layout} {model} {name_of(mesh)}: {sum(map(len, whole))} parameters", flush=True)
        else:
            failed += 1
            print(f"FAIL {layout} {model} {name_of(mesh)}\n{loaded if whole is None else differing(loaded, whole)}",
                  flush=True)
    return failed


def differing(loaded, whole):
    return [(rank, name) for rank, (a, b) in enumerate(zip(loaded, whole)) for name in sorted(a.keys() | b.keys())
            if a.get(name) != b.get(name)][:5]


def main():
    mode, engine, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        if mode == "tables":
            for model in rest or ENGINES[engine][1]:
                make_table(engine, model, scratch)
            return 0
        program, *models = rest
        failed = [check(engine, program, model, scratch) for model in models or ENGINES[engine][1]]
        return min(1, sum(failed))


if __name__ == "__main__":
    sys.exit(main())
