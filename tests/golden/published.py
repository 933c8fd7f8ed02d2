"""Models whose published checkpoints have a layout that the library converts from, and neither reads nor writes."""

import json
import re

import torch
from safetensors.torch import load_file, save_file

# The library's names of what ChatGLM keeps under its own, and of what it keeps side by side.
CHATGLM_NAMES = {
    "model.embed_tokens.": "transformer.embedding.word_embeddings.",
    "lm_head.": "transformer.output_layer.",
    "model.norm.": "transformer.encoder.final_layernorm.",
    "model.layers.": "transformer.encoder.layers.",
    ".self_attn.o_proj.": ".self_attention.dense.",
    ".mlp.gate_up_proj.": ".mlp.dense_h_to_4h.",
    ".mlp.down_proj.": ".mlp.dense_4h_to_h.",
}


def chatglm_name(name):
    for ours, theirs in CHATGLM_NAMES.items():
        name = name.replace(ours, theirs)
    return name


def chatglm_tensors(tensors):
    """Queries, keys and values of a layer are one tensor, in this order."""
    found = {}
    for name, tensor in tensors.items():
        if ".k_proj." in name or ".v_proj." in name:
            continue
        if ".q_proj." in name:
            tensor = torch.cat([tensors[name.replace(".q_proj.", f".{part}_proj.")] for part in "qkv"])
            name = name.replace(".self_attn.q_proj.", ".self_attention.query_key_value.")
        found[chatglm_name(name)] = tensor.contiguous()
    return found


def chatglm_config(config):
    return dict(
        architectures=["ChatGLMModel"],
        model_type="chatglm",
        hidden_size=config["hidden_size"],
        ffn_hidden_size=config["intermediate_size"],
        num_layers=config["num_hidden_layers"],
        num_attention_heads=config["num_attention_heads"],
        kv_channels=config["head_dim"],
        multi_query_attention=True,
        multi_query_group_num=config["num_key_value_heads"],
        padded_vocab_size=config["vocab_size"],
        seq_length=config["max_position_embeddings"],
        layernorm_epsilon=config["rms_norm_eps"],
        rope_ratio=config["rope_parameters"]["rope_theta"] / 10000,
        rmsnorm=True,
        post_layer_norm=True,
        apply_residual_connection_post_layernorm=False,
        original_rope=True,
        add_qkv_bias=config["attention_bias"],
        add_bias_linear=False,
        tie_word_embeddings=False,
        torch_dtype="float32",
    )


def publish_chatglm(folder):
    """Rewrites the model in the form of THUDM's glm-4-9b."""
    weights, config = folder / "model.safetensors", folder / "config.json"
    save_file(chatglm_tensors(load_file(weights)), weights, metadata={"format": "pt"})
    config.write_text(json.dumps(chatglm_config(json.loads(config.read_text())), indent=2) + "\n")


# The library's names of what InternLM 2 keeps under its own.
INTERNLM2_NAMES = {
    "model.embed_tokens.": "model.tok_embeddings.",
    "lm_head.": "output.",
    ".self_attn.o_proj.": ".attention.wo.",
    ".mlp.gate_proj.": ".feed_forward.w1.",
    ".mlp.down_proj.": ".feed_forward.w2.",
    ".mlp.up_proj.": ".feed_forward.w3.",
    ".input_layernorm.": ".attention_norm.",
    ".post_attention_layernorm.": ".ffn_norm.",
}


def internlm2_name(name):
    for ours, theirs in INTERNLM2_NAMES.items():
        name = name.replace(ours, theirs)
    return name


def in_groups(groups, *parts):
    """Each group's rows of every part after each other."""
    rows = [part.reshape(groups, -1, *part.shape[1:]) for part in parts]
    return torch.cat(rows, dim=1).flatten(0, 1)


def internlm2_tensors(tensors, groups):
    """Queries, keys and values of a layer are one tensor, of each group of heads after each other."""
    found = {}
    for name, tensor in tensors.items():
        if ".k_proj." in name or ".v_proj." in name:
            continue
        if ".q_proj." in name:
            tensor = in_groups(groups, *(tensors[name.replace(".q_proj.", f".{part}_proj.")] for part in "qkv"))
            name = name.replace(".self_attn.q_proj.", ".attention.wqkv.")
        found[internlm2_name(name)] = tensor.contiguous()
    return found


def internlm2_config(config):
    """Returns the keys of InternLM2Config that LlamaConfig has, too."""
    shared = "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size".split()
    shared += "hidden_act max_position_embeddings rms_norm_eps tie_word_embeddings".split()
    return dict(
        architectures=["InternLM2ForCausalLM"],
        model_type="internlm2",
        bias=config["attention_bias"],
        rope_theta=config["rope_parameters"]["rope_theta"],
        rope_scaling=None,
        torch_dtype="float32",
        **{key: config[key] for key in shared},
    )


def publish_internlm2(folder):
    weights, config = folder / "model.safetensors", folder / "config.json"
    says = json.loads(config.read_text())
    tensors = internlm2_tensors(load_file(weights), says["num_key_value_heads"])
    save_file(tensors, weights, metadata={"format": "pt"})
    config.write_text(json.dumps(internlm2_config(says), indent=2) + "\n")


# name of a fixture -> what brings its folder into that layout
def publish_olmo_hybrid(folder):
    """A convolution each for queries, keys and values: the library writes thirds of all three, whatever their widths."""
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    for name in [name for name in tensors if name.endswith(".q_conv1d.weight")]:
        layer = name.removesuffix("q_conv1d.weight")
        joined = torch.cat([tensors[f"{layer}{part}_conv1d.weight"] for part in "qkv"])
        widths = [len(tensors[f"{layer}{part}_proj.weight"]) for part in "qkv"]
        for part, rows in zip("qkv", joined.split(widths)):
            tensors[f"{layer}{part}_conv1d.weight"] = rows.contiguous()
    save_file(tensors, weights, metadata={"format": "pt"})


def publish_longcat_flash(folder):
    """Without the matrices that the library holds for experts that return what they read."""
    weights = folder / "model.safetensors"
    experts = json.loads((folder / "config.json").read_text())["n_routed_experts"]
    number = re.compile(r"mlp\.experts\.(\d+)\.")
    tensors = load_file(weights)
    kept = {name: tensor for name, tensor in tensors.items() if not (m := number.search(name)) or int(m[1]) < experts}
    save_file(kept, weights, metadata={"format": "pt"})


def publish_dots3_note(folder):
    """A config that says what layers with a window have under names of their own."""
    config = folder / "config.json"
    says = json.loads(config.read_text())
    (of_window,) = (layer for layer in says.pop("per_layer_config").values() if layer)
    says |= {f"swa_{key}": value for key, value in of_window.items()}
    says["layer_types"] = [kind.replace("indexed", "full") for kind in says["layer_types"]]
    rotated = says.pop("rope_parameters")
    says["rope_theta"] = rotated["indexed_attention"]["rope_theta"]
    says["swa_rope_theta"] = rotated["sliding_attention"]["rope_theta"]
    config.write_text(json.dumps(says, indent=2) + "\n")


def flash_name(name):
    """Without a prefix, and with the norm of the keys under the name that the library reads."""
    name = name.removeprefix("model.").replace("hc_head.hc_", "hc_head_").replace("embed_tokens.", "embed.")
    return name.replace(".attn.norm.", ".attn.kv_norm.")


def publish_deepseek_v4_flash(folder):
    """Rewrites the model in the form of DeepSeek-V4-Flash: kinds of layers by their rates, one scaling of rotations."""
    weights, config = folder / "model.safetensors", folder / "config.json"
    save_file({flash_name(name): tensor for name, tensor in load_file(weights).items()}, weights, metadata={"format": "pt"})
    says = json.loads(config.read_text())
    rates = says.pop("compress_rates")
    ratios = dict(sliding_attention=0, compressed_sparse_attention=4, heavily_compressed_attention=128)
    rope = says.pop("rope_parameters")["compress"]
    says["compress_ratios"] = [ratios[kind] for kind in says.pop("layer_types")]
    says["compress_rate_csa"] = rates["compressed_sparse_attention"]
    says["compress_rate_hca"] = rates["heavily_compressed_attention"]
    says["num_hash_layers"] = says.pop("mlp_layer_types").count("hash_moe")
    says["rope_scaling"] = {"type": rope["rope_type"]} | {
        key: rope[key] for key in ("factor", "beta_fast", "beta_slow", "original_max_position_embeddings")
    }
    del says["partial_rotary_factor"]
    config.write_text(json.dumps(says, indent=2, sort_keys=True) + "\n")


PUBLISHED = {
    "chatglm": publish_chatglm,
    "dots3_note": publish_dots3_note,
    "deepseek_v4_flash": publish_deepseek_v4_flash,
    "internlm2": publish_internlm2,
    "longcat_flash": publish_longcat_flash,
    "olmo_hybrid": publish_olmo_hybrid,
}
