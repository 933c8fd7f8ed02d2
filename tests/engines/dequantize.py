"""Compares what --dequantize writes with the readers of torch and compressed-tensors.

    python tests/engines/dequantize.py SHARDTOOL

Makes a model of one matrix per format from random weights, lets `shardtool merge --dequantize` write it as floats, and
compares every element. Prints a line PASS or FAIL per case. Needs torch, safetensors and compressed-tensors (requirements.txt).

FP8 (all 256 patterns, per tensor, per row and per block; E4M3 and E5M2): the exact product, rounded once. How many
elements torch's product in float32 gives otherwise, because it rounds twice, is printed.
pack-quantized and NVFP4: what compressed-tensors' compressors decompress.
"""
import json
import os
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def dequantized(program, tensors, quantization, dtype):
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "source"), os.path.join(folder, "out")
        os.mkdir(source)
        save_file(tensors, os.path.join(source, "model.safetensors"))
        with open(os.path.join(source, "config.json"), "w") as file:
            json.dump({"quantization_config": quantization}, file)
        command = [program, "-q", "merge", source, "-o", out, "--dequantize", "--dtype", dtype]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return load_file(os.path.join(out, "model.safetensors"))["a.weight"]


def same(found, expected):
    """True if all bits are equal, NaN apart."""
    nan = torch.isnan(expected)
    integer = {2: torch.int16, 4: torch.int32}[found.element_size()]
    bits_equal = found.view(integer) == expected.view(integer)
    return found.shape == expected.shape and bool(torch.all(bits_equal | (nan & torch.isnan(found))))


def check(name, found, expected):
    if not same(found, expected):
        where = torch.nonzero(found != expected)[:3].tolist()
        print(f"FAIL dequantize {name}: differs from the reference, first at {where}")
        return
    print(f"PASS dequantize {name}: {found.numel()} elements, all equal")


def fp8(program, stored, dtype, block, scale_shape, key):
    rows, columns = 96, 512
    q = torch.arange(256, dtype=torch.uint8).repeat(rows * columns // 256)[torch.randperm(rows * columns)]
    q = q.reshape(rows, columns).view(stored)
    scale = torch.rand(scale_shape) * 10.0 ** torch.randint(-6, 4, scale_shape)
    quantization = {"quant_method": "fp8"} | ({"weight_block_size": block} if block else {})
    found = dequantized(program, {"a.weight": q, "a." + key: scale}, quantization, dtype)
    full = scale
    if block:
        full = scale.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:rows, :columns]
    name = f"{stored} {list(scale_shape)} to {dtype}"
    check(name, found, once(q, full, TYPES[dtype]))
    twice = (q.to(torch.float32) * full).to(TYPES[dtype])
    other = int(((twice != found) & ~torch.isnan(twice)).sum())
    print(f"  a product in float32 gives {other} other elements of {found.numel()}")


def once(q, scale, dtype):
    """Rounds the exact product once: float64 to 16 bits rounds twice in torch, so odd float32 comes between."""
    exact = q.to(torch.float64) * scale.to(torch.float64)
    nearest = exact.to(torch.float32)
    if dtype == torch.float32:
        return nearest
    back = nearest.to(torch.float64)
    bits = nearest.view(torch.int32)
    toward_zero = torch.where(back.abs() > exact.abs(), bits - 1, bits)
    odd = torch.where((back == exact) | torch.isnan(exact), bits, toward_zero | 1)
    return odd.view(torch.float32).to(dtype)


def packed(program, dtype, bits, symmetric, group):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    rows, columns = 64, 256
    args = QuantizationArgs(num_bits=bits, type="int", symmetric=symmetric, strategy="group", group_size=group)
    scheme = QuantizationScheme(targets=["Linear"], weights=args, format="pack-quantized")
    compressor = BaseCompressor.get_value_from_registry("pack-quantized")
    state = {"weight": torch.randn(rows, columns, dtype=TYPES[dtype]),
             "weight_scale": (torch.rand(rows, columns // group) * 0.1 + 0.01).to(TYPES[dtype])}
    low = -(1 << bits - 1)
    if not symmetric:
        state["weight_zero_point"] = torch.randint(low, -low, (rows, columns // group), dtype=torch.int8)
    stored = compressor.compress(dict(state), scheme)
    expected = compressor.decompress(dict(stored), scheme)["weight"]
    weights = {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "group", "group_size": group}
    quantization = {"quant_method": "compressed-tensors", "format": "pack-quantized",
                    "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}}}
    found = dequantized(program, {"a." + key: value for key, value in stored.items()}, quantization, dtype)
    check(f"pack-quantized of {bits} bits, symmetric {symmetric}, to {dtype}", found, expected.to(TYPES[dtype]))


def nvfp4(program):
    """In bf16 alone, the type of what the compressor decompresses."""
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    rows, columns, group = 64, 256, 16
    args = QuantizationArgs(num_bits=4, type="float", symmetric=True, strategy="tensor_group", group_size=group)
    scheme = QuantizationScheme(targets=["Linear"], weights=args, format="nvfp4-pack-quantized")
    compressor = BaseCompressor.get_value_from_registry("nvfp4-pack-quantized")
    scale = (torch.rand(rows, columns // group) * 100 + 1).to(torch.float8_e4m3fn).to(torch.bfloat16)
    state = {"weight": torch.randn(rows, columns, dtype=torch.bfloat16), "weight_scale": scale,
             "weight_global_scale": torch.tensor([1234.567])}
    stored = compressor.compress(dict(state), scheme)
    expected = compressor.decompress(dict(stored), scheme)["weight"]
    weights = {"num_bits": 4, "type": "float", "group_size": group}
    quantization = {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized",
                    "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}}}
    found = dequantized(program, {"a." + key: value for key, value in stored.items()}, quantization, "bf16")
    check("nvfp4-pack-quantized to bf16", found, expected)


def main():
    torch.manual_seed(1)
    program = os.path.abspath(sys.argv[1])
    for dtype in TYPES:
        for stored in (torch.float8_e4m3fn, torch.float8_e5m2):
            fp8(program, stored, dtype, [32, 128], (3, 4), "weight_scale_inv")
            fp8(program, stored, dtype, None, (96, 1), "weight_scale")
            fp8(program, stored, dtype, None, (), "weight_scale")
    for dtype in ("bf16", "f16"):
        for bits in (4, 8):
            packed(program, dtype, bits, True, 32)
            packed(program, dtype, bits, False, 64)
    nvfp4(program)


if __name__ == "__main__":
    main()
