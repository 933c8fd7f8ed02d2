"""Has the Run:ai model streamer and fastsafetensors read plain parts, and compares every tensor with safetensors' own.

usage: streamers.py SHARDTOOL

The parts are those of a small Llama on 2 and 8 devices (8 devices hold replicas of KV heads), in several files per
device, and merged again.
"""
import pathlib
import subprocess
import sys
import tempfile

import fastsafetensors
import runai_model_streamer
import safetensors
import torch

SAMPLE = pathlib.Path(__file__).parents[2] / "samples/tiny-llama"


def by_safetensors(file):
    with safetensors.safe_open(file, framework="pt") as part:
        return {name: part.get_tensor(name) for name in part.keys()}


def by_runai(file):
    with runai_model_streamer.SafetensorsStreamer() as streamer:
        streamer.stream_file(str(file))
        return {name: tensor.clone() for name, tensor in streamer.get_tensors()}


def by_fastsafetensors(file):
    loader = fastsafetensors.SafeTensorsFileLoader(fastsafetensors.SingleGroup(), torch.device("cpu"), nogds=True)
    loader.add_filenames({0: [str(file)]})
    buffer = loader.copy_files_to_device()
    tensors = {name: buffer.get_tensor(name).clone() for name in by_safetensors(file)}
    buffer.close()
    loader.close()
    return tensors


def is_equal(expected, found):
    return expected.keys() == found.keys() and all(
        tensor.dtype == found[name].dtype and torch.equal(tensor, found[name]) for name, tensor in expected.items())


program = sys.argv[1]
with tempfile.TemporaryDirectory() as scratch:
    folders = {"tp 2": ["split", SAMPLE, "--tp", "2"],
               "tp 8 in small files": ["split", SAMPLE, "--tp", "8", "--max-file-size", "20KiB"],
               "merged": ["merge", f"{scratch}/tp 2"]}
    for label, arguments in folders.items():
        subprocess.run([program, *map(str, arguments), "-o", f"{scratch}/{label}", "-q"], check=True, stdout=subprocess.DEVNULL)
        files = sorted(pathlib.Path(scratch, label).glob("*.safetensors"))
        for reader in (by_runai, by_fastsafetensors):
            right = bool(files) and all(is_equal(by_safetensors(file), reader(file)) for file in files)
            print("PASS" if right else "FAIL", f"{reader.__name__[3:]} {label}: {len(files)} files", flush=True)
