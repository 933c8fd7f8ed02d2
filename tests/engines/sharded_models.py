"""Small models for the layouts of engines: configurations, and weights drawn from the tensors' names.

tests/layouts/golden has what the engines make of them; the C++ tests draw the same weights
(tests/support/checkpoint_files.h, distinct_tensor).
"""
import json
import pathlib
import struct

BASE = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_key_value_heads": 4, "vocab_size": 300, "max_position_embeddings": 128,
}

# name: (class of the configuration, its arguments, keys that vLLM reads and transformers omits)
MODELS = {
    "llama": ("LlamaConfig", {}, {}),
    "llama_tied": ("LlamaConfig", {"tie_word_embeddings": True}, {}),
    "llama_fp8": ("LlamaConfig", {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4,
                                  "num_key_value_heads": 2, "head_dim": 128},
                  {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128],
                                           "activation_scheme": "dynamic", "fmt": "e4m3"}}),
    "qwen2": ("Qwen2Config", {}, {}),
    "qwen3": ("Qwen3Config", {"head_dim": 8}, {}),
    "qwen3_moe": ("Qwen3MoeConfig", {"head_dim": 8, "moe_intermediate_size": 32, "num_experts": 8,
                                     "num_experts_per_tok": 2}, {}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4, "num_experts_per_tok": 2}, {}),
    "gemma3_text": ("Gemma3TextConfig", {"head_dim": 16}, {}),
    "deepseek_v3": ("DeepseekV3Config", {
        "num_key_value_heads": 8, "moe_intermediate_size": 32, "n_routed_experts": 8, "n_group": 2,
        "topk_group": 1, "num_experts_per_tok": 2, "n_shared_experts": 1,
        "first_k_dense_replace": 1, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 16, "v_head_dim": 16}, {"topk_method": "noaux_tc"}),
}
WIDTHS = {"BF16": 2, "F32": 4, "F8_E4M3": 1}


def distinct_bytes(name, size):
    """Returns bytes that the name determines: FNV-1a, then a linear congruence."""
    mask = (1 << 64) - 1
    state = 14695981039346656037
    for character in name.encode():
        state = ((state ^ character) * 1099511628211) & mask
    out = bytearray(size)
    for i in range(size):
        state = (state * 6364136223846793005 + 1442695040888963407) & mask
        out[i] = state >> 56
    return bytes(out)


def quantise(tensors, rows, columns):
    """Makes the projections FP8, with a scale per block."""
    for name in [name for name in tensors if name.endswith("_proj.weight")]:
        shape = tensors[name][1]
        tensors[name] = ["F8_E4M3", shape]
        tensors[name + "_scale_inv"] = ["F32", [-(-shape[0] // rows), -(-shape[1] // columns)]]


def describe(kind):
    """Returns config.json and {tensor: (dtype, shape)} of a model as transformers saves it."""
    import tempfile

    import torch
    import transformers
    from safetensors import safe_open

    name, arguments, extra = MODELS[kind]
    config = getattr(transformers, name)(**{**BASE, **arguments})
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        text = json.loads(pathlib.Path(folder, "config.json").read_text())
        with safe_open(pathlib.Path(folder, "model.safetensors"), "pt") as file:
            tensors = {}
            for tensor in sorted(file.keys()):
                part = file.get_slice(tensor)
                # As published: transformers converts it with the rest.
                dtype = "F32" if tensor.endswith("e_score_correction_bias") else part.get_dtype()
                tensors[tensor] = [dtype, part.get_shape()]
    if "quantization_config" in extra:
        quantise(tensors, *extra["quantization_config"]["weight_block_size"])
    text.update(extra)
    text.pop("transformers_version", None)
    return text, tensors


def write(folder, config, tensors):
    """Writes config.json and model.safetensors."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    header, data = {}, []
    offset = 0
    for name, (dtype, shape) in sorted(tensors.items()):
        size = WIDTHS[dtype]
        for extent in shape:
            size *= extent
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        data.append(distinct_bytes(name, size))
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(data)


def read(path):
    """Returns {tensor: [dtype, shape, first half of XXH3-128]} of a safetensors file."""
    import xxhash

    data = pathlib.Path(path).read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    return {name: [row["dtype"], row["shape"], xxhash.xxh3_128_hexdigest(
        data[begin + row["data_offsets"][0]:begin + row["data_offsets"][1]])[:16]] for name, row in header.items()}
