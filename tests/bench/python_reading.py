#!/usr/bin/env python3
"""Times the Python module: opening many tensors, and reading against safetensors.safe_open.

    python tests/bench/python_reading.py [FOLDER] [--gigabytes 2] [--rounds 5]

Needs the wheel, numpy and safetensors; torch where it is there. Files are in the page cache. Every tensor is read to its
last byte: safe_open maps files for torch, and a mapped tensor costs its time where it is first used, so that both are
followed by a sum over the tensor. Figures are medians over interleaved rounds; short works get more rounds, half a second
of them at least.
"""

import argparse
import statistics
import struct
import tempfile
import time
from pathlib import Path

import numpy
from safetensors import safe_open
from safetensors.numpy import save_file

import shardtool as st


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def medians(rounds, works):
    seconds = {name: [] for name in works}
    start = time.perf_counter()
    while rounds > 0 or time.perf_counter() - start < 0.5:
        rounds -= 1
        for name, work in works.items():
            seconds[name].append(timed(work))
    return {name: statistics.median(values) for name, values in seconds.items()}


def touch(array):
    """Reads one element of every page."""
    flat = array.reshape(-1)
    return flat[:: max(1, 4096 // flat.itemsize)].sum() if isinstance(flat, numpy.ndarray) else flat[::2048].sum()


def write_header_only(path, tensors):
    """A file of many tensors of four bytes each."""
    rows = ",".join(f'"model.layers.{i // 9}.block.{i % 9}.weight":{{"dtype":"F32","shape":[1],"data_offsets":[{4 * i},{4 * i + 4}]}}'
                    for i in range(tensors))
    header = ("{" + rows + "}").encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4 * tensors))


def bench_open(folder, rounds):
    path = folder / "many.safetensors"
    write_header_only(path, 100_000)
    found = medians(rounds, {"shardtool": lambda: st.open(path), "safe_open": lambda: safe_open(path, framework="np")})
    for name, seconds in found.items():
        print(f"open 100,000 tensors   {name:12} {1000 * seconds:8.1f} ms")
    path.unlink()


def plain_copy(path, buffer):
    with open(path, "rb", buffering=0) as file:
        file.readinto(buffer)


def report(title, bytes, found, other):
    for name, seconds in found.items():
        print(f"{title:22} {name:12} {bytes:14,} bytes {1000 * seconds:8.2f} ms {bytes / seconds / 1e9:7.2f} GB/s "
              f"{found[other] / seconds:6.2f} of {other}")


def bench_reading(folder, gigabytes, rounds, framework, megabytes):
    path = folder / "read.safetensors"
    count = max(1, int(gigabytes * 1000 / megabytes))
    rows = int(megabytes * 1e6 / 4096 / 2)
    tensor = numpy.random.default_rng(1).integers(0, 60000, (rows, 4096)).astype(numpy.float16)
    save_file({f"layers.{i}.weight": tensor for i in range(count)}, path)
    names = [f"layers.{i}.weight" for i in range(count)]
    buffer = bytearray(path.stat().st_size)

    def shardtool():
        ck = st.open(path)
        for name in names:
            touch(ck.get_tensor(name, framework=framework))

    def safetensors():
        with safe_open(path, framework=framework) as f:
            for name in names:
                touch(f.get_tensor(name))

    def subscripts(subscript):
        """Reads this part of every tensor by each of the two."""
        def shardtool():
            ck = st.open(path)
            for name in names:
                touch(ck.get_slice(name, framework=framework)[subscript])

        def safetensors():
            with safe_open(path, framework=framework) as f:
                for name in names:
                    touch(f.get_slice(name)[subscript])

        return {"shardtool": shardtool, "safe_open": safetensors}

    bytes = path.stat().st_size
    report(f"{framework} {megabytes} MB tensors", bytes,
           medians(rounds, {"shardtool": shardtool, "safe_open": safetensors, "readinto": lambda: plain_copy(path, buffer)}),
           "safe_open")
    for title, subscript, part in (("the first 10 rows", slice(10), 10 * count * 8192),
                                   ("a half in one piece", slice(rows // 2, None), (rows - rows // 2) * count * 8192),
                                   ("an eighth of columns", (slice(None), slice(512)), bytes // 8)):
        report(f"{framework} {title}", part, medians(rounds, subscripts(subscript)), "safe_open")
    path.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    frameworks = ["np"]
    try:
        import torch  # noqa: F401

        frameworks.append("pt")
    except ImportError:
        print("without torch: numpy only")
    with tempfile.TemporaryDirectory(dir=args.folder) as scratch:
        bench_open(Path(scratch), args.rounds)
        for framework in frameworks:
            for megabytes in (1, 100):
                bench_reading(Path(scratch), args.gigabytes, args.rounds, framework, megabytes)


if __name__ == "__main__":
    main()
