"""Makes the fixtures of packed weights: a tiny model per format and what its weights are.

Each folder here has config.json, model.safetensors (packed) and plain/ with the same
model in plain numbers, F32, or F64 where a format divides its scales. Packing follows the writers
of the formats: AutoGPTQ nn_modules/qlinear/qlinear_cuda_old.py (pack), AutoAWQ
awq/modules/linear/gemm.py (from_linear), compressed-tensors pack_quantized.py and
nvfp4_quantized.py, and for MXFP4 the reader in transformers integrations/mxfp4.py turned round.
Needs numpy alone: python3 make_packed.py <folder>
"""

import json
import os
import sys

import numpy as np

rng = np.random.default_rng(20261122)
HIDDEN, HEADS, KV_HEADS, HEAD_DIM, MLP, VOCAB, GROUP = 32, 4, 2, 8, 64, 16, 16
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])
NAMES = {"f4": "F32", "f8": "F64", "f2": "F16", "i4": "I32", "i8": "I64", "u1": "U8"}


def write_checkpoint(path, tensors, config):
    os.makedirs(path, exist_ok=True)
    header, data, offset = {}, [], 0
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name][0])
        bytes_ = array.tobytes()
        dtype = tensors[name][1] or NAMES[array.dtype.str[1:]]
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [offset, offset + len(bytes_)]}
        data.append(bytes_)
        offset += len(bytes_)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{path}/model.safetensors", "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text + b"".join(data))
    with open(f"{path}/config.json", "w") as out:
        json.dump(config, out, indent=1)
        out.write("\n")


def packed(codes, axis, bits=4, order=None):
    """Unsigned codes, 32 / bits of them along the axis in one I32."""
    per_word = 32 // bits
    codes = np.moveaxis(codes.astype(np.uint32), axis, -1)
    codes = codes.reshape(*codes.shape[:-1], -1, per_word)
    words = np.zeros(codes.shape[:-1], np.uint32)
    for place in range(per_word):
        words |= codes[..., order[place] if order else place] << np.uint32(bits * place)
    return np.moveaxis(words, -1, axis).view(np.int32)


def scales_of(shape):
    return (rng.uniform(0.02, 0.12, shape)).astype(np.float16)


def gptq(out, inputs, desc_act=False, zero_offset=1, bits=4):
    q = rng.integers(0, 2**bits, (inputs, out))
    groups = inputs // GROUP
    z = rng.integers(1, 2**bits - 1, (groups, out))
    s = scales_of((groups, out))
    g = np.arange(inputs) // GROUP
    if desc_act:
        g = rng.permutation(g)
    weight = ((q - z[g]) * s[g].astype(np.float32)).T
    parts = {"qweight": packed(q, 0, bits), "qzeros": packed(z - zero_offset, 1, bits),
             "scales": s, "g_idx": g.astype(np.int32)}
    return {f".{k}": (v, None) for k, v in parts.items()}, weight.astype(np.float32)


def awq(out, inputs):
    q = rng.integers(0, 16, (inputs, out))
    z = rng.integers(0, 16, (inputs // GROUP, out))
    s = scales_of((inputs // GROUP, out))
    g = np.arange(inputs) // GROUP
    weight = ((q - z[g]) * s[g].astype(np.float32)).T
    return {".qweight": (packed(q, 1, order=AWQ_ORDER), None),
            ".qzeros": (packed(z, 1, order=AWQ_ORDER), None),
            ".scales": (s, None)}, weight.astype(np.float32)


def pack_quantized(out, inputs, symmetric=False):
    q = rng.integers(-8, 8, (out, inputs))
    z = np.zeros((out, inputs // GROUP), int)
    if not symmetric:
        z = rng.integers(-8, 8, (out, inputs // GROUP))
    s = scales_of((out, inputs // GROUP))
    g = np.arange(inputs) // GROUP
    weight = (q - z[:, g]) * s[:, g].astype(np.float32)
    parts = {".weight_packed": (packed(q + 8, 1), None), ".weight_scale": (s, None),
             ".weight_shape": (np.array([out, inputs], np.int64), None)}
    if not symmetric:
        parts[".weight_zero_point"] = (packed(z + 8, 0), None)
    return parts, weight.astype(np.float32)


def nibbles(codes):
    codes = codes.astype(np.uint8)
    return codes[..., 0::2] | codes[..., 1::2] << 4


def e4m3(bits):
    exponent, fraction = bits >> 3 & 15, (bits & 7) / 8
    return np.where(exponent == 0, fraction * 2.0**-6, (1 + fraction) * 2.0 ** (exponent - 7.0))


def nvfp4(out, inputs, modelopt=False):
    q = rng.integers(0, 16, (out, inputs))
    s = rng.integers(0x40, 0x70, (out, inputs // 16)).astype(np.uint8)
    g = np.arange(inputs) // 16
    other = np.array([0.0013 if modelopt else 745.25], np.float32)
    of_all = other.astype(np.float64)[0]
    scale = e4m3(s) * of_all if modelopt else e4m3(s) / of_all
    weight = E2M1[q] * scale[:, g]
    if modelopt:
        return {".weight": (nibbles(q), None), ".weight_scale": (s, "F8_E4M3"),
                ".weight_scale_2": (other, None)}, weight
    return {".weight_packed": (nibbles(q), None), ".weight_scale": (s, "F8_E4M3"),
            ".weight_global_scale": (other, None)}, weight


def plain(*shape, around=0.0):
    return (around + rng.normal(0, 0.2, shape)).astype(np.float32), None


def llama(packer):
    """The tensors of one layer, packed and plain."""
    sizes = {"self_attn.q_proj": (HEADS * HEAD_DIM, HIDDEN),
             "self_attn.k_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
             "self_attn.v_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
             "self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
             "mlp.gate_proj": (MLP, HIDDEN), "mlp.up_proj": (MLP, HIDDEN),
             "mlp.down_proj": (HIDDEN, MLP)}
    both = {"model.embed_tokens.weight": plain(VOCAB, HIDDEN), "lm_head.weight": plain(VOCAB, HIDDEN),
            "model.norm.weight": plain(HIDDEN, around=1),
            "model.layers.0.input_layernorm.weight": plain(HIDDEN, around=1),
            "model.layers.0.post_attention_layernorm.weight": plain(HIDDEN, around=1)}
    stored, numbers = dict(both), dict(both)
    for name, (out, inputs) in sizes.items():
        parts, weight = packer(out, inputs)
        for suffix, part in parts.items():
            stored[f"model.layers.0.{name}{suffix}"] = part
        numbers[f"model.layers.0.{name}.weight"] = (weight, None)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
              "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM,
              "intermediate_size": MLP, "num_hidden_layers": 1, "vocab_size": VOCAB,
              "rms_norm_eps": 1e-5, "hidden_act": "silu", "rope_theta": 10000.0,
              "max_position_embeddings": 64, "tie_word_embeddings": False}
    return stored, numbers, config


def mxfp4(experts, out, inputs):
    q = rng.integers(0, 16, (experts, out, inputs))
    s = rng.integers(118, 124, (experts, out, inputs // 32)).astype(np.uint8)
    weight = E2M1[q] * np.repeat(2.0 ** (s.astype(int) - 127), 32, axis=2)
    blocks = nibbles(q).reshape(experts, out, inputs // 32, 16)
    return blocks, s, weight.transpose(0, 2, 1).astype(np.float32)


def gpt_oss():
    hidden, mlp, experts = 64, 64, 2
    layer = "model.layers.0."
    attention = layer + "self_attn."
    both = {"model.embed_tokens.weight": plain(VOCAB, hidden), "lm_head.weight": plain(VOCAB, hidden),
            "model.norm.weight": plain(hidden, around=1),
            layer + "input_layernorm.weight": plain(hidden, around=1),
            layer + "post_attention_layernorm.weight": plain(hidden, around=1),
            attention + "sinks": plain(HEADS),
            layer + "mlp.router.weight": plain(experts, hidden),
            layer + "mlp.router.bias": plain(experts),
            layer + "mlp.experts.gate_up_proj_bias": plain(experts, 2 * mlp),
            layer + "mlp.experts.down_proj_bias": plain(experts, hidden)}
    for name, rows, columns in (("q", HEADS * HEAD_DIM, hidden), ("k", KV_HEADS * HEAD_DIM, hidden),
                                ("v", KV_HEADS * HEAD_DIM, hidden), ("o", hidden, HEADS * HEAD_DIM)):
        both[f"{attention}{name}_proj.weight"] = plain(rows, columns)
        both[f"{attention}{name}_proj.bias"] = plain(rows)
    stored, numbers = dict(both), dict(both)
    for name, out, inputs in (("gate_up", 2 * mlp, hidden), ("down", hidden, mlp)):
        blocks, scales, weight = mxfp4(experts, out, inputs)
        stored[f"{layer}mlp.experts.{name}_proj_blocks"] = (blocks, None)
        stored[f"{layer}mlp.experts.{name}_proj_scales"] = (scales, None)
        numbers[f"{layer}mlp.experts.{name}_proj"] = (weight, None)
    config = {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": hidden,
              "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM,
              "intermediate_size": mlp, "num_hidden_layers": 1, "vocab_size": VOCAB,
              "num_local_experts": experts, "num_experts_per_tok": 1, "sliding_window": 128,
              "layer_types": ["full_attention"], "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
              "max_position_embeddings": 64, "tie_word_embeddings": False, "attention_bias": True}
    return stored, numbers, config


def write(folder, name, model, quantization):
    stored, numbers, config = model
    write_checkpoint(f"{folder}/{name}/plain", numbers, config)
    write_checkpoint(f"{folder}/{name}", stored, {**config, "quantization_config": quantization})


def compressed(layout, bits, group):
    weights = {"num_bits": bits, "group_size": group, "strategy": "group", "type": "int"}
    return {"quant_method": "compressed-tensors", "format": layout,
            "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}}}


def main(folder):
    of_gptq = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False}
    write(folder, "gptq", llama(gptq), of_gptq)
    write(folder, "gptq_v2", llama(lambda o, i: gptq(o, i, zero_offset=0)),
          {**of_gptq, "checkpoint_format": "gptq_v2"})
    write(folder, "gptq_8bit", llama(lambda o, i: gptq(o, i, bits=8)), {**of_gptq, "bits": 8})
    write(folder, "gptq_act_order", llama(lambda o, i: gptq(o, i, desc_act=True)),
          {**of_gptq, "desc_act": True})
    write(folder, "awq", llama(awq), {"quant_method": "awq", "bits": 4, "group_size": GROUP,
                                      "version": "gemm", "zero_point": True})
    write(folder, "pack_quantized", llama(pack_quantized), compressed("pack-quantized", 4, GROUP))
    write(folder, "pack_quantized_symmetric", llama(lambda o, i: pack_quantized(o, i, True)),
          compressed("pack-quantized", 4, GROUP))
    write(folder, "nvfp4", llama(nvfp4), compressed("nvfp4-pack-quantized", 4, 16))
    write(folder, "nvfp4_modelopt", llama(lambda o, i: nvfp4(o, i, True)),
          {"quant_method": "modelopt", "quant_algo": "NVFP4"})
    write(folder, "mxfp4", gpt_oss(), {"quant_method": "mxfp4"})


if __name__ == "__main__":
    main(sys.argv[1])
