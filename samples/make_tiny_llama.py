#!/usr/bin/env python3
"""Makes the sample checkpoint: a Llama with grouped-query attention, 216 thousand BF16 weights.

    python3 samples/make_tiny_llama.py [FOLDER]        (default: tiny-llama beside this script)

Same seed, same bytes, on every machine: only random.random() is used, which Python promises to keep.
"""

import json
import random
import struct
import sys
from pathlib import Path

SEED = 20240229
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 1000,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
GENERATION_CONFIG = {"bos_token_id": 1, "eos_token_id": 2, "do_sample": False}
TOKENIZER_CONFIG = {"tokenizer_class": "LlamaTokenizer", "model_max_length": 256}


def layer_shapes(layer):
    hidden, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    queries = CONFIG["num_attention_heads"] * CONFIG["head_dim"]
    keys = CONFIG["num_key_value_heads"] * CONFIG["head_dim"]
    prefix = f"model.layers.{layer}."
    return {
        prefix + "input_layernorm.weight": [hidden],
        prefix + "mlp.down_proj.weight": [hidden, inner],
        prefix + "mlp.gate_proj.weight": [inner, hidden],
        prefix + "mlp.up_proj.weight": [inner, hidden],
        prefix + "post_attention_layernorm.weight": [hidden],
        prefix + "self_attn.k_proj.weight": [keys, hidden],
        prefix + "self_attn.o_proj.weight": [hidden, queries],
        prefix + "self_attn.q_proj.weight": [queries, hidden],
        prefix + "self_attn.v_proj.weight": [keys, hidden],
    }


def files():
    vocabulary = [CONFIG["vocab_size"], CONFIG["hidden_size"]]
    return {
        "model-00001-of-00002.safetensors":
            {"model.embed_tokens.weight": vocabulary, **layer_shapes(0)},
        "model-00002-of-00002.safetensors":
            {"lm_head.weight": vocabulary, **layer_shapes(1),
             "model.norm.weight": [CONFIG["hidden_size"]]},
    }


def count(shape):
    product = 1
    for size in shape:
        product *= size
    return product


def bf16(value):
    """The upper half of the float32: rounding towards zero."""
    return struct.pack("<f", value)[2:]


def weights(shape, generator):
    """Norms near one, matrices uniform with the deviation 1 / sqrt(inputs)."""
    centre, spread = (1.0, 0.1) if len(shape) == 1 else (0.0, (3.0 / shape[1]) ** 0.5)
    return b"".join(bf16(centre + spread * (2.0 * generator.random() - 1.0))
                    for _ in range(count(shape)))


def write_safetensors(path, shapes, generator):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, shape in shapes.items():
        block = weights(shape, generator)
        header[name] = {"dtype": "BF16", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(block)]}
        data += block
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return len(data)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "tiny-llama"
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(SEED)
    total, places = 0, {}
    for file, shapes in files().items():
        total += write_safetensors(folder / file, shapes, generator)
        places.update({name: file for name in shapes})
    write_json(folder / "model.safetensors.index.json",
               {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))})
    write_json(folder / "config.json", CONFIG)
    write_json(folder / "generation_config.json", GENERATION_CONFIG)
    write_json(folder / "tokenizer_config.json", TOKENIZER_CONFIG)


if __name__ == "__main__":
    main()
