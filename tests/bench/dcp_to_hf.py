"""Times merge of a checkpoint of torch.distributed.checkpoint against torch's dcp_to_torch_save of the same one.

usage: dcp_to_hf.py SHARDTOOL FOLDER [GB [ROUNDS]]    needs torch and numpy; FOLDER needs three times as much disk

Four files of BF16 tensors, as four ranks of FSDP save them, stay in the page cache; every round runs both, each as a
process of its own, until its output is on the disk. This process has no torch, since what a process has counts as the
memory of those that it starts. merge writes safetensors for transformers and digests all bytes,
dcp_to_torch_save a file of torch.save. Time of imports does not count.
"""
import importlib.util
import multiprocessing
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

RANKS = 4
HIDDEN, MLP, KV = 4096, 14336, 1024
SHAPES = {"self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (KV, HIDDEN), "self_attn.v_proj": (KV, HIDDEN),
          "self_attn.o_proj": (HIDDEN, HIDDEN), "mlp.gate_proj": (MLP, HIDDEN), "mlp.up_proj": (MLP, HIDDEN),
          "mlp.down_proj": (HIDDEN, MLP)}
LAYER_BYTES = 2 * sum(rows * columns for rows, columns in SHAPES.values())
CONVERT = """
import os, sys, time, warnings
warnings.filterwarnings("ignore")
import torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
begin = time.monotonic()
dcp_to_torch_save(sys.argv[1], sys.argv[2])
with open(sys.argv[2], "rb+") as file:
    os.fsync(file.fileno())
print(time.monotonic() - begin, torch.__version__)
"""


def save_rank(rank, folder, layers):
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    dist.init_process_group("gloo", rank=rank, world_size=RANKS, init_method=f"file://{folder}/meet")
    mesh = init_device_mesh("cpu", (RANKS,))
    torch.manual_seed(rank)
    drawn = torch.randint(-2**15, 2**15, (MLP * HIDDEN // RANKS + layers,), dtype=torch.int16)
    state = {}
    for layer in range(layers):
        for name, (rows, columns) in SHAPES.items():
            part = drawn[layer:layer + rows * columns // RANKS].view(torch.bfloat16).reshape(rows // RANKS, columns).clone()
            state[f"model.layers.{layer}.{name}.weight"] = DTensor.from_local(part, mesh, [Shard(0)], run_check=False)
    dcp.save(state, checkpoint_id=f"{folder}/dcp")
    dist.destroy_process_group()


def run(command):
    """Returns what the command printed, its seconds, and the largest resident set of it in MiB."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[:3]} ended with status {process.returncode}")
    return printed, time.monotonic() - begin, usage.ru_maxrss / 1024


def main():
    if importlib.util.find_spec("torch") is None:
        print("SKIPPED: needs torch")
        return
    program, scratch = sys.argv[1:3]
    gigabytes = float(sys.argv[3]) if len(sys.argv) > 3 else 4
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    layers = max(1, round(gigabytes * 1e9 / LAYER_BYTES))
    os.makedirs(scratch, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        folder = pathlib.Path(name)
        spawn = multiprocessing.get_context("spawn")
        savers = [spawn.Process(target=save_rank, args=(rank, name, layers)) for rank in range(RANKS)]
        for saver in savers:
            saver.start()
        for saver in savers:
            saver.join()
        size = layers * LAYER_BYTES / 1e9
        seconds, peaks = {"merge": [], "torch": []}, {"merge": [], "torch": []}
        for _ in range(rounds + 1):  # the first one warms the page cache
            subprocess.run(["sync"], check=True)
            _, taken, peak = run([program, "-q", "merge", folder / "dcp", "-o", folder / "merged", "--progress", "never"])
            seconds["merge"].append(taken)
            peaks["merge"].append(peak)
            shutil.rmtree(folder / "merged")
            subprocess.run(["sync"], check=True)
            printed, _, peak = run([sys.executable, "-c", CONVERT, folder / "dcp", folder / "whole.pt"])
            taken, version = printed.split()
            seconds["torch"].append(float(taken))
            peaks["torch"].append(peak)
            (folder / "whole.pt").unlink()
        print(f"{size:.2f} GB, torch {version}, {rounds} rounds")
        print("| command | s | GB/s | peak MiB | speed against torch |\n|---|---|---|---|---|")
        ratios = [t / m for t, m in zip(seconds["torch"][1:], seconds["merge"][1:])]
        for label, key, ratio in (("`dcp_to_torch_save` + fsync", "torch", 1), ("merge", "merge", statistics.median(ratios))):
            median = statistics.median(seconds[key][1:])
            print(f"| {label} | {median:.2f} | {size / median:.2f} | {max(peaks[key][1:]):.0f} | {ratio:.2f} |")
        print(f"ratios of the rounds: {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
