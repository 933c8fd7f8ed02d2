"""Prints a table of hashes of torch's casts, the golden file tests/kernels/casts.txt.

    python tests/engines/casts.py > tests/kernels/casts.txt

A line is `FROM TO EXPONENT HASH`. The hash is over all elements with these exponent bits, both
signs (`-`: over all elements of the type), in ascending order of their bits without the sign,
positive ones first:

    sum over k of result[k] * (2 k + 1) * 0x9E3779B97F4A7C15   modulo 2^64

where the result is an unsigned integer of its width, and all ones for NaN.
"""
import numpy as np
import torch

WIDTHS = {"F32": np.uint32, "F16": np.uint16, "BF16": np.uint16}
TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
         "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
         "F8_E4M3FNUZ": torch.float8_e4m3fnuz, "F8_E5M2FNUZ": torch.float8_e5m2fnuz}
SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32}


def cast(bits, source, target):
    """Casts an array of element bits and returns those of the results, all ones for NaN."""
    values = torch.from_numpy(bits.copy()).view(TYPES[source])
    result = values.to(TYPES[target])
    out = result.view(SIGNED[result.element_size()]).numpy().view(WIDTHS[target]).copy()
    out[torch.isnan(result.to(torch.float32)).numpy()] = np.iinfo(WIDTHS[target]).max
    return out


def hash_of(results):
    k = np.arange(len(results), dtype=np.uint64)
    weights = (2 * k + 1) * np.uint64(0x9E3779B97F4A7C15)
    return int(np.sum(results.astype(np.uint64) * weights, dtype=np.uint64))


def signed_bits(width, magnitudes):
    """Appends the same magnitudes with the sign bit."""
    sign = np.array(1, dtype=magnitudes.dtype) << np.array(width - 1, dtype=magnitudes.dtype)
    return np.concatenate([magnitudes, magnitudes | sign])


def main():
    for source, width in (("F16", 16), ("BF16", 16), ("F8_E4M3", 8), ("F8_E5M2", 8),
                          ("F8_E4M3FNUZ", 8), ("F8_E5M2FNUZ", 8)):
        unsigned = np.uint16 if width == 16 else np.uint8
        bits = signed_bits(width, np.arange(1 << (width - 1), dtype=unsigned))
        for target in ("F32", "F16", "BF16"):
            if source != target:
                print(source, target, "-", f"{hash_of(cast(bits, source, target)):016x}")
    for exponent in range(256):
        fractions = np.arange(1 << 23, dtype=np.uint32)
        bits = signed_bits(32, fractions | np.uint32(exponent << 23))
        for target in ("F16", "BF16"):
            print("F32", target, exponent, f"{hash_of(cast(bits, 'F32', target)):016x}")


if __name__ == "__main__":
    main()
