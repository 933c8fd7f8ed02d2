"""Has transformers load what merge makes of torch's checkpoints, and compares all parameters and the logits.

usage: transformers_merge.py SHARDTOOL

Two processes shard a model with FSDP2 and save it with torch.distributed.checkpoint, and as rank files in the form of
verl; the program also splits the model with --layout dcp. Each is merged to a Hugging Face folder.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as multiprocessing
import transformers

import sharded_models

warnings.filterwarnings("ignore")
transformers.utils.logging.disable_progress_bar()
MODELS = ["llama", "llama_tied", "qwen2", "qwen3", "gemma3_text"]


def make(kind):
    name, arguments, _ = sharded_models.MODELS[kind]
    torch.manual_seed(3)
    config = getattr(transformers, name)(**{**sharded_models.BASE, **arguments})
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)


def save_rank(rank, kind, folder):
    """Saves a model with torch.distributed.checkpoint in FOLDER/dcp and as rank files in FOLDER/ranks."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("gloo", rank=rank, world_size=2, init_method=f"file://{folder}/meet")
    model = make(kind)
    if rank == 0:
        model.config.save_pretrained(f"{folder}/dcp")
        model.config.save_pretrained(f"{folder}/ranks/huggingface")
    state = fully_shard(model, mesh=init_device_mesh("cpu", (2,), mesh_dim_names=("fsdp",))).state_dict()
    dist.barrier()
    dcp.save({"model": state, "step": 7}, checkpoint_id=f"{folder}/dcp")
    torch.save(state, f"{folder}/ranks/model_world_size_2_rank_{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


def loaded(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()


def difference(expected, found):
    names, others = dict(expected.named_parameters()), dict(found.named_parameters())
    if names.keys() != others.keys():
        return f"other names: {sorted(names.keys() ^ others.keys())[:3]}"
    wrong = [name for name in names if not torch.equal(names[name], others[name])]
    tokens = torch.arange(16).reshape(2, 8) % 300
    with torch.no_grad():
        same = torch.equal(expected(tokens).logits, found(tokens).logits)
    return ", ".join(wrong[:3]) or ("" if same else "the logits differ")


def check(program, kind):
    """Yields a label and what is wrong per form of the checkpoint."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "ranks").mkdir()
        multiprocessing.spawn(save_rank, (kind, str(folder)), nprocs=2)
        expected = make(kind).eval()
        expected.save_pretrained(folder / "whole")
        subprocess.run([program, "-q", "split", folder / "whole", "-o", folder / "chunks", "--tp", "2", "--layout", "dcp"],
                       check=True, stdout=subprocess.DEVNULL)
        for form, source in (("torch.distributed.checkpoint", f"{folder}/dcp#model"), ("FSDP rank files", folder / "ranks"),
                             ("split --layout dcp", folder / "chunks")):
            merged = folder / f"merged {form}"
            done = subprocess.run([program, "-q", "merge", source, "-o", merged], check=False, capture_output=True, text=True)
            yield form, done.stderr if done.returncode else difference(expected, loaded(merged))


def main():
    failed = 0
    for kind in MODELS:
        for form, problem in check(sys.argv[1], kind):
            failed += bool(problem)
            label = f"transformers {transformers.__version__} loads merge of {form}: {kind}"
            print(f"FAIL {label}: {problem}" if problem else f"PASS {label}", flush=True)
    return min(1, failed)


if __name__ == "__main__":
    sys.exit(main())
