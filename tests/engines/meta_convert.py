"""Has transformers' converter of Meta's Llama files read what `--layout meta` writes, or writes the golden tables.

usage: meta_convert.py check SHARDTOOL    also merges the files without their manifest
       meta_convert.py tables SHARDTOOL   checks, and writes tests/layouts/golden/meta@3/MODEL.json

SHARDTOOL_LLAMA_CONVERT names convert_llama_weights_to_hf.py of transformers 4.46.3. Without it, the check is skipped.
"""
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import sharded_models
import sharded_state

LAYOUT = "meta@3"
# Version of Llama for the script, flags, numbers of ranks.
MODELS = {"llama3": ("3", [], [1, 2]), "llama2": ("2", ["--axes", "llama2"], [2])}
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 48,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 40, "tie_word_embeddings": False,
}


def describe():
    """Returns {tensor: [dtype, shape]} of the model in transformers' names."""
    h, f, v, kv = 32, 48, 40, 16
    tensors = {"model.embed_tokens.weight": [v, h], "lm_head.weight": [v, h], "model.norm.weight": [h]}
    for layer in range(CONFIG["num_hidden_layers"]):
        name = f"model.layers.{layer}."
        tensors.update({
            name + "self_attn.q_proj.weight": [h, h], name + "self_attn.k_proj.weight": [kv, h],
            name + "self_attn.v_proj.weight": [kv, h], name + "self_attn.o_proj.weight": [h, h],
            name + "mlp.gate_proj.weight": [f, h], name + "mlp.up_proj.weight": [f, h], name + "mlp.down_proj.weight": [h, f],
            name + "input_layernorm.weight": [h], name + "post_attention_layernorm.weight": [h]})
    return {name: ["BF16", shape] for name, shape in tensors.items()}


class Captured(Exception):
    """Ends the script after it has converted the tensors."""


def convert(parts, version, ranks, scratch):
    """Returns {tensor: bytes} that the script makes of the files."""
    import torch
    from safetensors.torch import load_file

    spec = importlib.util.spec_from_file_location("convert_llama", os.environ["SHARDTOOL_LLAMA_CONVERT"])
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    scratch.mkdir()
    for path in parts.glob("consolidated.*.safetensors"):
        torch.save(load_file(path), scratch / path.with_suffix(".pth").name)
    (scratch / "params.json").write_text(json.dumps({
        "dim": CONFIG["hidden_size"], "n_layers": CONFIG["num_hidden_layers"], "n_heads": CONFIG["num_attention_heads"],
        "n_kv_heads": CONFIG["num_key_value_heads"], "norm_eps": 1e-5}))
    tensors = {}

    class Model:
        @staticmethod
        def from_pretrained(folder, **_):
            for path in pathlib.Path(folder).glob("*.bin"):
                tensors.update(torch.load(path))
            raise Captured

    script.LlamaForCausalLM = Model
    try:
        script.write_model(str(scratch / "out"), str(scratch), llama_version=version, vocab_size=CONFIG["vocab_size"],
                           num_shards=ranks)
    except Captured:
        pass
    return {name: value.contiguous().view(torch.uint8).numpy().tobytes() for name, value in tensors.items()
            if not name.endswith("inv_freq")}


def check(program, model, ranks, scratch):
    """Returns the names of the tensors that do not come back, and the rows of every rank's file."""
    version, axes, _ = MODELS[model]
    source, parts, merged = (scratch / f"{model}-{ranks}-{what}" for what in ("hf", "parts", "merged"))
    sharded_models.write(source, CONFIG, describe())
    run = lambda *words: subprocess.run([program, *words, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    run("split", source, "-o", parts, "--layout", LAYOUT, "--mesh", f"tp={ranks}", *axes)
    wanted = {name: sharded_models.distinct_bytes(name, 2 * math.prod(shape))
              for name, (_, shape) in describe().items()}
    found = convert(parts, version, ranks, scratch / f"{model}-{ranks}-pth")
    different = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    rows = [sharded_models.read(parts / f"consolidated.{rank:02}.safetensors") for rank in range(ranks)]
    if not axes:
        (parts / "manifest.json").unlink()
        run("merge", f"{LAYOUT}:{parts}", "-o", merged)
        whole = sharded_models.read(source / "model.safetensors")
        if sharded_models.read(merged / "model.safetensors") != whole:
            different.append("merged")
    return different, rows


def main():
    mode, program = sys.argv[1:]
    if "SHARDTOOL_LLAMA_CONVERT" not in os.environ:
        print(f"SKIPPED: {LAYOUT}: SHARDTOOL_LLAMA_CONVERT does not name the script", flush=True)
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for model, (_, axes, meshes) in MODELS.items():
            table = {"layout": LAYOUT, "config": CONFIG, "tensors": describe(), "meshes": []}
            for ranks in meshes:
                different, rows = check(program, model, ranks, pathlib.Path(folder))
                failed += bool(different)
                print(f"{'FAIL' if different else 'PASS'} {LAYOUT} {model} tp={ranks} {different or ''}", flush=True)
                table["meshes"].append({"flags": ["--mesh", f"tp={ranks}", *axes], "ranks": rows})
            if mode == "tables" and not failed:
                golden = sharded_state.GOLDEN / LAYOUT
                golden.mkdir(parents=True, exist_ok=True)
                (golden / f"{model}.json").write_text(sharded_state.to_text(table))
    return min(1, failed)


if __name__ == "__main__":
    sys.exit(main())
