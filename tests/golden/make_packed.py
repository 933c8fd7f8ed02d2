"""Makes a tiny model per format of packed weights, and the same model in plain numbers.

usage: make_packed.py FOLDER          needs the standard library alone; the build runs it

Each folder FOLDER/FORMAT has config.json, model.safetensors (packed) and plain/ with the same model in plain numbers,
F32, or F64 where a format divides its scales. Packing follows the writers of the formats: AutoGPTQ
nn_modules/qlinear/qlinear_cuda_old.py (pack), AutoAWQ awq/modules/linear/gemm.py (from_linear), compressed-tensors
pack_quantized.py and nvfp4_quantized.py, and for MXFP4 the reader in transformers integrations/mxfp4.py turned round.
"""

import json
import math
import os
import random
import struct
import sys
from dataclasses import dataclass

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, MLP, VOCAB, GROUP = 32, 4, 2, 8, 64, 16, 16
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
E2M1 += [-number for number in E2M1]
LETTERS = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "U8": "B", "F8_E4M3": "B"}

# random() gives the same numbers in every version of Python; other methods need not.
draw = random.Random(20261122).random


def integer(begin, end):
    return begin + int(draw() * (end - begin))


def normal(mean, deviation):
    """A sum of twelve uniform numbers, which needs no function of the platform."""
    return mean + deviation * (sum(draw() for _ in range(12)) - 6)


@dataclass
class Tensor:
    dtype: str
    shape: list
    numbers: list  # row-major

    def data(self):
        return struct.pack(f"<{len(self.numbers)}{LETTERS[self.dtype]}", *self.numbers)


def matrix(dtype, rows):
    return Tensor(dtype, [len(rows), len(rows[0])], [number for row in rows for number in row])


def made(rows, columns, number):
    """rows x columns; number(row, column) is called in row-major order."""
    return [[number(row, column) for column in range(columns)] for row in range(rows)]


def turned(rows):
    return [list(column) for column in zip(*rows)]


def write_checkpoint(path, tensors, config):
    os.makedirs(path, exist_ok=True)
    header, data = {}, b""
    for name, tensor in sorted(tensors.items()):
        begin = len(data)
        data += tensor.data()
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{path}/model.safetensors", "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text + data)
    with open(f"{path}/config.json", "w") as out:
        json.dump(config, out, indent=1)
        out.write("\n")


def word(codes, bits, order):
    """Unsigned codes in one I32: code order[place] at each place."""
    bits_of_word = sum(codes[order[place]] << bits * place for place in range(len(codes)))
    return bits_of_word - (1 << 32) if bits_of_word >> 31 else bits_of_word


def packed_columns(codes, bits=4, order=None):
    """32 / bits codes of a row in one I32."""
    per_word = 32 // bits
    order = order or range(per_word)
    rows = [[word(row[at : at + per_word], bits, order) for at in range(0, len(row), per_word)] for row in codes]
    return matrix("I32", rows)


def packed_rows(codes, bits=4):
    """32 / bits codes of a column in one I32."""
    columns = packed_columns(turned(codes), bits)
    width = columns.shape[1]
    return matrix("I32", turned([columns.numbers[at : at + width] for at in range(0, len(columns.numbers), width)]))


def scales_of(rows, columns):
    """Numbers that F16 holds."""
    return made(rows, columns, lambda *_: struct.unpack("<e", struct.pack("<e", 0.02 + 0.1 * draw()))[0])


def gptq(out, inputs, desc_act=False, zero_offset=1, bits=4):
    q = made(inputs, out, lambda *_: integer(0, 2**bits))
    groups = inputs // GROUP
    z = made(groups, out, lambda *_: integer(1, 2**bits - 1))
    s = scales_of(groups, out)
    g = [i // GROUP for i in range(inputs)]
    if desc_act:
        g = [group for _, group in sorted((draw(), group) for group in g)]
    weight = made(out, inputs, lambda o, i: (q[i][o] - z[g[i]][o]) * s[g[i]][o])
    zeros = [[zero - zero_offset for zero in row] for row in z]
    parts = {
        ".qweight": packed_rows(q, bits),
        ".qzeros": packed_columns(zeros, bits),
        ".scales": matrix("F16", s),
        ".g_idx": Tensor("I32", [inputs], g),
    }
    return parts, matrix("F32", weight)


def awq(out, inputs):
    q = made(inputs, out, lambda *_: integer(0, 16))
    z = made(inputs // GROUP, out, lambda *_: integer(0, 16))
    s = scales_of(inputs // GROUP, out)
    weight = made(out, inputs, lambda o, i: (q[i][o] - z[i // GROUP][o]) * s[i // GROUP][o])
    parts = {
        ".qweight": packed_columns(q, order=AWQ_ORDER),
        ".qzeros": packed_columns(z, order=AWQ_ORDER),
        ".scales": matrix("F16", s),
    }
    return parts, matrix("F32", weight)


def pack_quantized(out, inputs, symmetric=False):
    q = made(out, inputs, lambda *_: integer(-8, 8))
    z = made(out, inputs // GROUP, lambda *_: 0 if symmetric else integer(-8, 8))
    s = scales_of(out, inputs // GROUP)
    weight = made(out, inputs, lambda o, i: (q[o][i] - z[o][i // GROUP]) * s[o][i // GROUP])
    parts = {
        ".weight_packed": packed_columns([[code + 8 for code in row] for row in q]),
        ".weight_scale": matrix("F16", s),
        ".weight_shape": Tensor("I64", [2], [out, inputs]),
    }
    if not symmetric:
        parts[".weight_zero_point"] = packed_rows([[zero + 8 for zero in row] for row in z])
    return parts, matrix("F32", weight)


def nibbles(codes):
    return [low | high << 4 for low, high in zip(codes[0::2], codes[1::2])]


def e4m3(bits):
    exponent, fraction = bits >> 3 & 15, (bits & 7) / 8
    return math.ldexp(fraction, -6) if exponent == 0 else math.ldexp(1 + fraction, exponent - 7)


def nvfp4(out, inputs, modelopt=False):
    q = made(out, inputs, lambda *_: integer(0, 16))
    s = made(out, inputs // 16, lambda *_: integer(0x40, 0x70))
    of_all = struct.unpack("<f", struct.pack("<f", 0.0013 if modelopt else 745.25))[0]

    def number(o, i):
        scale = e4m3(s[o][i // 16])
        return E2M1[q[o][i]] * (scale * of_all if modelopt else scale / of_all)

    packed, of_one = (".weight", ".weight_scale_2") if modelopt else (".weight_packed", ".weight_global_scale")
    parts = {
        packed: matrix("U8", [nibbles(row) for row in q]),
        ".weight_scale": matrix("F8_E4M3", s),
        of_one: Tensor("F32", [1], [of_all]),
    }
    return parts, matrix("F64", made(out, inputs, number))


def plain(*shape, around=0.0):
    return Tensor("F32", list(shape), [normal(around, 0.2) for _ in range(math.prod(shape))])


def llama(packer):
    """The tensors of one layer, packed and plain."""
    sizes = {
        "self_attn.q_proj": (HEADS * HEAD_DIM, HIDDEN),
        "self_attn.k_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
        "self_attn.v_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
        "mlp.gate_proj": (MLP, HIDDEN),
        "mlp.up_proj": (MLP, HIDDEN),
        "mlp.down_proj": (HIDDEN, MLP),
    }
    both = {
        "model.embed_tokens.weight": plain(VOCAB, HIDDEN),
        "lm_head.weight": plain(VOCAB, HIDDEN),
        "model.norm.weight": plain(HIDDEN, around=1),
        "model.layers.0.input_layernorm.weight": plain(HIDDEN, around=1),
        "model.layers.0.post_attention_layernorm.weight": plain(HIDDEN, around=1),
    }
    stored, numbers = dict(both), dict(both)
    for name, (out, inputs) in sizes.items():
        parts, weight = packer(out, inputs)
        stored |= {f"model.layers.0.{name}{suffix}": part for suffix, part in parts.items()}
        numbers[f"model.layers.0.{name}.weight"] = weight
    return stored, numbers, {"architectures": ["LlamaForCausalLM"], "model_type": "llama", **sizes_of_config(HIDDEN, MLP)}


def sizes_of_config(hidden, mlp):
    return {
        "hidden_size": hidden,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "intermediate_size": mlp,
        "num_hidden_layers": 1,
        "vocab_size": VOCAB,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "rope_theta": 10000.0,
        "max_position_embeddings": 64,
        "tie_word_embeddings": False,
    }


def mxfp4(experts, out, inputs):
    """Blocks and scales [experts, out, ..], and the weight [experts, inputs, out]."""
    q = [made(out, inputs, lambda *_: integer(0, 16)) for _ in range(experts)]
    s = [made(out, inputs // 32, lambda *_: integer(118, 124)) for _ in range(experts)]
    numbers = [
        math.ldexp(E2M1[q[e][o][i]], s[e][o][i // 32] - 127)
        for e in range(experts)
        for i in range(inputs)
        for o in range(out)
    ]
    bytes_of_codes = [byte for of_expert in q for row in of_expert for byte in nibbles(row)]
    scales = [scale for of_expert in s for row in of_expert for scale in row]
    return (
        Tensor("U8", [experts, out, inputs // 32, 16], bytes_of_codes),
        Tensor("U8", [experts, out, inputs // 32], scales),
        Tensor("F32", [experts, inputs, out], numbers),
    )


def gpt_oss():
    hidden, mlp, experts = 64, 64, 2
    layer = "model.layers.0."
    attention = layer + "self_attn."
    both = {
        "model.embed_tokens.weight": plain(VOCAB, hidden),
        "lm_head.weight": plain(VOCAB, hidden),
        "model.norm.weight": plain(hidden, around=1),
        layer + "input_layernorm.weight": plain(hidden, around=1),
        layer + "post_attention_layernorm.weight": plain(hidden, around=1),
        attention + "sinks": plain(HEADS),
        layer + "mlp.router.weight": plain(experts, hidden),
        layer + "mlp.router.bias": plain(experts),
        layer + "mlp.experts.gate_up_proj_bias": plain(experts, 2 * mlp),
        layer + "mlp.experts.down_proj_bias": plain(experts, hidden),
    }
    for name, rows, columns in (
        ("q", HEADS * HEAD_DIM, hidden),
        ("k", KV_HEADS * HEAD_DIM, hidden),
        ("v", KV_HEADS * HEAD_DIM, hidden),
        ("o", hidden, HEADS * HEAD_DIM),
    ):
        both[f"{attention}{name}_proj.weight"] = plain(rows, columns)
        both[f"{attention}{name}_proj.bias"] = plain(rows)
    stored, numbers = dict(both), dict(both)
    for name, out, inputs in (("gate_up", 2 * mlp, hidden), ("down", hidden, mlp)):
        blocks, scales, weight = mxfp4(experts, out, inputs)
        stored[f"{layer}mlp.experts.{name}_proj_blocks"] = blocks
        stored[f"{layer}mlp.experts.{name}_proj_scales"] = scales
        numbers[f"{layer}mlp.experts.{name}_proj"] = weight
    config = {
        "architectures": ["GptOssForCausalLM"],
        "model_type": "gpt_oss",
        **sizes_of_config(hidden, mlp),
        "num_local_experts": experts,
        "num_experts_per_tok": 1,
        "sliding_window": 128,
        "layer_types": ["full_attention"],
        "attention_bias": True,
    }
    return stored, numbers, config


def write(folder, name, model, quantization):
    stored, numbers, config = model
    write_checkpoint(f"{folder}/{name}/plain", numbers, config)
    write_checkpoint(f"{folder}/{name}", stored, {**config, "quantization_config": quantization})


def compressed(layout, bits, group):
    weights = {"num_bits": bits, "group_size": group, "strategy": "group", "type": "int"}
    return {
        "quant_method": "compressed-tensors",
        "format": layout,
        "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}},
    }


def main(folder):
    of_gptq = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False}
    of_awq = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True}
    formats = {
        "gptq": (gptq, of_gptq),
        "gptq_v2": (lambda o, i: gptq(o, i, zero_offset=0), {**of_gptq, "checkpoint_format": "gptq_v2"}),
        "gptq_8bit": (lambda o, i: gptq(o, i, bits=8), {**of_gptq, "bits": 8}),
        "gptq_act_order": (lambda o, i: gptq(o, i, desc_act=True), {**of_gptq, "desc_act": True}),
        "awq": (awq, of_awq),
        "pack_quantized": (pack_quantized, compressed("pack-quantized", 4, GROUP)),
        "pack_quantized_symmetric": (
            lambda o, i: pack_quantized(o, i, True),
            compressed("pack-quantized", 4, GROUP),
        ),
        "nvfp4": (nvfp4, compressed("nvfp4-pack-quantized", 4, 16)),
        "nvfp4_modelopt": (lambda o, i: nvfp4(o, i, True), {"quant_method": "modelopt", "quant_algo": "NVFP4"}),
    }
    for name, (packer, quantization) in formats.items():
        write(folder, name, llama(packer), quantization)
    write(folder, "mxfp4", gpt_oss(), {"quant_method": "mxfp4"})


if __name__ == "__main__":
    main(sys.argv[1])
