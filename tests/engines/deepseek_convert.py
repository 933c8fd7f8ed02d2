"""Compares the files of `--layout deepseek` with those of DeepSeek's own inference/convert.py, or writes the golden tables.

usage: deepseek_convert.py check SHARDTOOL   splits small models; merges what convert.py wrote
       deepseek_convert.py tables            writes tests/layouts/golden/deepseek@3.2/MODEL.json

SHARDTOOL_DEEPSEEK_V3 and SHARDTOOL_DEEPSEEK_V32 name convert.py of the repositories deepseek-ai/DeepSeek-V3 (9b4e9788) and
deepseek-ai/DeepSeek-V3.2-Exp (3b99a535). Without them, the check is skipped.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import sharded_models
import sharded_state

LAYOUT = "deepseek@3.2"
# The script that converts each model, and the numbers of ranks.
MODELS = {
    "deepseek_v2": ("SHARDTOOL_DEEPSEEK_V3", [4]),
    "deepseek_v3_fp8": ("SHARDTOOL_DEEPSEEK_V3", [2]),
    "deepseek_v32": ("SHARDTOOL_DEEPSEEK_V32", [2]),
}
SIZES = {
    "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 40,
    "moe_intermediate_size": 16, "n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1,
    "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8,
}


def linears(config, layer, dense):
    """Returns {tensor without .weight: shape} of the matrices of a layer."""
    c = config
    heads, key = c["num_attention_heads"], c["qk_nope_head_dim"] + c["qk_rope_head_dim"]
    h, attention, mlp = c["hidden_size"], f"model.layers.{layer}.self_attn.", f"model.layers.{layer}.mlp."
    rows = {
        attention + "kv_a_proj_with_mqa": [c["kv_lora_rank"] + c["qk_rope_head_dim"], h],
        attention + "kv_b_proj": [heads * (c["qk_nope_head_dim"] + c["v_head_dim"]), c["kv_lora_rank"]],
        attention + "o_proj": [h, heads * c["v_head_dim"]],
    }
    if c["q_lora_rank"]:
        rows[attention + "q_a_proj"] = [c["q_lora_rank"], h]
        rows[attention + "q_b_proj"] = [heads * key, c["q_lora_rank"]]
    else:
        rows[attention + "q_proj"] = [heads * key, h]
    if c.get("index_n_heads"):
        rows[attention + "indexer.wq_b"] = [c["index_n_heads"] * c["index_head_dim"], c["q_lora_rank"]]
        rows[attention + "indexer.wk"] = [c["index_head_dim"], h]
    modules = {mlp: c["intermediate_size"]} if dense else {
        mlp + "shared_experts.": c["moe_intermediate_size"] * c["n_shared_experts"],
        **{f"{mlp}experts.{e}.": c["moe_intermediate_size"] for e in range(c["n_routed_experts"])}}
    for module, width in modules.items():
        rows.update({module + "gate_proj": [width, h], module + "up_proj": [width, h], module + "down_proj": [h, width]})
    return rows


def others(config, layer, dense):
    """Returns {tensor: [dtype, shape]} of the rest of a layer."""
    h, name = config["hidden_size"], f"model.layers.{layer}."
    rows = {name + "input_layernorm.weight": ["BF16", [h]], name + "post_attention_layernorm.weight": ["BF16", [h]],
            name + "self_attn.kv_a_layernorm.weight": ["BF16", [config["kv_lora_rank"]]]}
    if config["q_lora_rank"]:
        rows[name + "self_attn.q_a_layernorm.weight"] = ["BF16", [config["q_lora_rank"]]]
    if config.get("index_n_heads"):
        rows[name + "self_attn.indexer.weights_proj.weight"] = ["BF16", [config["index_n_heads"], h]]
        for part in ("weight", "bias"):
            rows[name + "self_attn.indexer.k_norm." + part] = ["F32", [config["index_head_dim"]]]
    if not dense:
        rows[name + "mlp.gate.weight"] = ["BF16", [config["n_routed_experts"], h]]
    if not dense and config["model_type"] != "deepseek_v2":
        rows[name + "mlp.gate.e_score_correction_bias"] = ["F32", [config["n_routed_experts"]]]
    return rows


def further_token(config, layer):
    """Returns {tensor: [dtype, shape]} that only a layer behind the last has (multi-token prediction)."""
    h, v, name = config["hidden_size"], config["vocab_size"], f"model.layers.{layer}."
    norms = {name + part + ".weight": ["BF16", [h]] for part in ("enorm", "hnorm", "shared_head.norm")}
    return {**norms, name + "eh_proj.weight": ["BF16", [h, 2 * h]], name + "embed_tokens.weight": ["BF16", [v, h]],
            name + "shared_head.head.weight": ["BF16", [v, h]]}


def stored(matrices, block):
    """Returns the matrices in BF16 or, with a block, in FP8 with one scale per block."""
    rows = {}
    for name, (height, width) in matrices.items():
        rows[name + ".weight"] = ["F8_E4M3" if block else "BF16", [height, width]]
        if block:
            rows[name + ".weight_scale_inv"] = ["F32", [-(-height // block), -(-width // block)]]
    return rows


def describe(model):
    """Returns config.json and {tensor: [dtype, shape]} in the names that DeepSeek publishes."""
    kind = model.removesuffix("_fp8")
    config = {"model_type": kind, "architectures": ["Deepseek" + kind.removeprefix("deepseek_").upper() + "ForCausalLM"],
              **SIZES, "q_lora_rank": None if kind == "deepseek_v2" else 24, "num_hidden_layers": 2}
    layers, block = {0: True, 1: False}, 0
    if kind == "deepseek_v32":
        config.update(index_n_heads=4, index_head_dim=8)
    if model.endswith("_fp8"):
        # convert.py leaves out layer 61 by its number. Two of the others are enough.
        config.update(num_hidden_layers=61, num_nextn_predict_layers=1, quantization_config={
            "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [8, 8]})
        layers, block = {0: True, 60: False, 61: False}, 8
    h, v = config["hidden_size"], config["vocab_size"]
    tensors = {"model.embed_tokens.weight": ["BF16", [v, h]], "model.norm.weight": ["BF16", [h]], "lm_head.weight": ["BF16", [v, h]]}
    for layer, dense in layers.items():
        tensors.update(stored(linears(config, layer, dense), block))
        tensors.update(others(config, layer, dense))
    if config.get("num_nextn_predict_layers"):
        tensors.update(further_token(config, 61))
    return config, tensors


def convert(model, source, parts, ranks):
    """Runs DeepSeek's script."""
    config = json.loads((source / "config.json").read_text())
    subprocess.run([sys.executable, os.environ[MODELS[model][0]], "--hf-ckpt-path", source, "--save-path", parts, "--n-experts",
                    str(config["n_routed_experts"]), "--model-parallel", str(ranks)], check=True, stderr=subprocess.DEVNULL)


def rows_of(folder, rank, ranks):
    return sharded_models.read(folder / f"model{rank}-mp{ranks}.safetensors")


def flags(ranks):
    return ["--mesh", f"tp={ranks}"]


def make_table(model, scratch):
    config, tensors = describe(model)
    sharded_models.write(scratch / model, config, tensors)
    table = {"layout": LAYOUT, "config": config, "tensors": tensors, "meshes": []}
    for ranks in MODELS[model][1]:
        parts = scratch / f"{model}-{ranks}"
        convert(model, scratch / model, parts, ranks)
        table["meshes"].append({"flags": flags(ranks), "ranks": [rows_of(parts, rank, ranks) for rank in range(ranks)]})
        print(f"made {LAYOUT} {model} tp={ranks}", flush=True)
    folder = sharded_state.GOLDEN / LAYOUT
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{model}.json").write_text(sharded_state.to_text(table))


def content(folder):
    """Returns the rows of all tensors in a folder's weights."""
    return {name: row for path in sorted(folder.glob("*.safetensors")) for name, row in sharded_models.read(path).items()}


def check(program, model, ranks, scratch):
    """Returns the differences between our files and the script's, and between what we merge of the script's and the source."""
    source, ours, theirs, merged = (scratch / f"{model}-{ranks}-{what}" for what in ("hf", "ours", "theirs", "merged"))
    sharded_models.write(source, *describe(model))
    convert(model, source, theirs, ranks)
    run = lambda *words: subprocess.run([program, *words, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    run("split", source, "-o", ours, "--layout", LAYOUT, *flags(ranks))
    run("merge", f"{LAYOUT}:{theirs}", "-o", merged, "--model-config", source / "config.json")
    kept = {name: row for name, row in content(source).items() if not name.startswith("model.layers.61.")}
    pairs = [(rows_of(ours, rank, ranks), rows_of(theirs, rank, ranks)) for rank in range(ranks)] + [(content(merged), kept)]
    return sharded_state.differing([a for a, b in pairs], [b for a, b in pairs])


def main():
    mode, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        if mode == "tables":
            for model in MODELS:
                make_table(model, scratch)
            return 0
        failed = 0
        for model, (script, meshes) in MODELS.items():
            for ranks in meshes:
                if script not in os.environ:
                    print(f"SKIPPED: {LAYOUT} {model}: {script} does not name convert.py", flush=True)
                    continue
                different = check(rest[0], model, ranks, scratch)
                failed += bool(different)
                print(f"{'FAIL' if different else 'PASS'} {LAYOUT} {model} tp={ranks} {different or ''}", flush=True)
        return min(1, failed)


if __name__ == "__main__":
    sys.exit(main())
