"""Has transformers compute with what merge makes of megatron-core's checkpoints, and compares the logits with Megatron's.

usage: megatron_merge.py SHARDTOOL

A small GPTModel of megatron-core runs on the CPU over gloo, and is saved as torch_dist (which NeMo 2 writes, too), or as
the rank files of Megatron-LM's --ckpt-format torch: the dict of generate_state_dict in megatron/training/checkpointing.py
(d98e8a6), with an optimizer's and a random state.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", OMP_NUM_THREADS="1")
import numpy
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

warnings.filterwarnings("ignore")

BASE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
        "intermediate_size": 48, "vocab_size": 60, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "tie_word_embeddings": False}
# name: (class of transformers, its arguments, arguments of Megatron's config, metadata of the save)
CASES = {
    "llama": ("LlamaConfig", {}, {}, {}),
    "llama in single layers": ("LlamaConfig", {}, {}, {"singleton_local_shards": True}),
    "qwen2": ("Qwen2Config", {}, {"add_qkv_bias": True}, {}),
    "qwen3": ("Qwen3Config", {}, {"qk_layernorm": True}, {}),
    "qwen3_moe": ("Qwen3MoeConfig", {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48,
                                     "norm_topk_prob": True},
                  {"qk_layernorm": True, "num_moe_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 48,
                   "moe_router_load_balancing_type": "none", "moe_router_pre_softmax": False}, {}),
}
# Cases that are saved as rank files: their numbers of tensor-parallel ranks, of pipeline stages, and of ranks of experts.
RANK_FILES = {"llama in rank files": ("llama", 2, 2, 1), "qwen2 in rank files": ("qwen2", 2, 1, 1),
              "qwen3 in rank files": ("qwen3", 1, 2, 1), "qwen3_moe in rank files": ("qwen3_moe", 2, 1, 1),
              "qwen3_moe in rank files of experts": ("qwen3_moe", 1, 1, 2),
              "qwen3_moe in rank files of stages and experts": ("qwen3_moe", 1, 2, 2)}
TOKENS = torch.arange(16).reshape(2, 8) * 3 % 60


def megatron_model(case, tp, pp=1, stage=0, ep=1):
    import torch.nn.functional as F
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.transformer.transformer_config import TransformerConfig

    _, _, more, _ = CASES[case]
    config = TransformerConfig(
        num_layers=2, hidden_size=32, ffn_hidden_size=48, num_attention_heads=4, num_query_groups=2, kv_channels=8,
        use_cpu_initialization=True, gated_linear_unit=True, activation_func=F.silu, add_bias_linear=False,
        normalization="RMSNorm", layernorm_epsilon=1e-5, tensor_model_parallel_size=tp,
        pipeline_model_parallel_size=pp, expert_model_parallel_size=ep, pipeline_dtype=torch.float32, hidden_dropout=0.0, attention_dropout=0.0,
        params_dtype=torch.float32, masked_softmax_fusion=False, **more)
    spec = get_gpt_layer_local_spec(num_experts=config.num_moe_experts, qk_layernorm=config.qk_layernorm, normalization="RMSNorm")
    return GPTModel(config, spec, vocab_size=64, max_sequence_length=64, position_embedding_type="rope",
                    share_embeddings_and_output_weights=False, parallel_output=False, pre_process=stage == 0,
                    post_process=stage == pp - 1).eval()


def draw_norms_and_biases(model, tp, rank):
    """Replaces the ones and zeros of the start; what ranks share is the same on all of them."""
    for name, parameter in model.named_parameters():
        if "norm" in name or name.endswith("bias"):
            parameter.data = (torch.rand(parameter.shape) if parameter.shape[0] != 64 // tp or "norm" in name
                              else torch.rand(64)[rank * 64 // tp:][:64 // tp]).contiguous()


def draw_experts(model, rank):
    """Gives every rank other experts: those of all ranks start alike."""
    generator = torch.Generator().manual_seed(rank)
    for name, parameter in model.named_parameters():
        if ".experts." in name:
            parameter.data = torch.randn(parameter.shape, generator=generator) / 8


def start(rank, tp, pp, folder, ep=1):
    ranks = tp * pp * ep
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank))
    dist.init_process_group("gloo", rank=rank, world_size=ranks, init_method=f"file://{folder}/meet")
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_device = lambda: "cpu"
    from megatron.core import parallel_state
    from megatron.core.transformer.moe import moe_utils

    moe_utils.te_general_gemm = None  # Megatron asks for it before it knows that TransformerEngine is not there
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp,
                                             expert_model_parallel_size=ep, create_gloo_process_groups=True)
    from megatron.core.tensor_parallel.random import initialize_rng_tracker
    initialize_rng_tracker(inference_rng_tracker=True)


def logits_of(model, rank, stage, pp, stride):
    """Runs the stages one after the other; the last one has the logits."""
    mask = torch.ones(8, 8, dtype=torch.bool).triu(1)[None, None]
    with torch.no_grad():
        if stage > 0:
            hidden = torch.empty(8, 2, 32)
            dist.recv(hidden, rank - stride)
            model.set_input_tensor(hidden)
        out = model(TOKENS, torch.arange(8).expand(2, 8), mask)
        if stage < pp - 1:
            dist.send(out.contiguous(), rank + stride)
    return out


def save_rank_file(rank, tp, pp, ep, case, folder):
    """Saves a rank's module as Megatron-LM does, and the logits."""
    start(rank, tp, pp, folder, ep)
    stage, ep_rank, tp_rank = rank // (tp * ep), rank // tp % ep, rank % tp
    torch.manual_seed(5 + stage)
    model = megatron_model(case, tp, pp, stage, ep)
    torch.manual_seed(7 + stage)
    draw_norms_and_biases(model, tp, tp_rank)
    draw_experts(model, rank)
    logits = logits_of(model, rank, stage, pp, tp * ep)
    name = f"mp_rank_{tp_rank:02d}" + (f"_{stage:03d}" if pp > 1 else "") + (f"_{ep_rank:03d}" if ep > 1 else "")
    saved = pathlib.Path(folder, "saved", name)
    saved.mkdir(parents=True)
    parameters = dict(model.named_parameters())
    state = {"args": argparse.Namespace(num_layers=2, params_dtype=torch.float32, swiglu=True), "checkpoint_version": 3.0,
             "iteration": 7, "model": model.state_dict_for_save_checkpoint(),
             "optimizer": {"optimizer": {"state": {i: {"exp_avg": torch.zeros_like(p)}
                                                   for i, p in enumerate(parameters.values())}}},
             "rng_state": [{"random_rng_state": random.getstate(), "np_rng_state": numpy.random.get_state(),
                            "torch_rng_state": torch.get_rng_state()}]}
    torch.save(state, saved / "model_optim_rng.pt")
    if stage == pp - 1 and tp_rank == ep_rank == 0:
        torch.save(logits, f"{folder}/logits.pt")
    dist.barrier()
    os._exit(0)


def save_rank(rank, tp, case, folder):
    """Saves a model, and on rank 0 its logits."""
    start(rank, tp, 1, folder)
    from megatron.core import dist_checkpointing

    torch.manual_seed(5)
    model = megatron_model(case, tp)
    torch.manual_seed(7)
    draw_norms_and_biases(model, tp, rank)
    logits = logits_of(model, rank, 0, 1, tp)
    metadata = CASES[case][3]
    saved = pathlib.Path(folder, "saved")
    saved.mkdir(exist_ok=True)
    dist_checkpointing.save({**model.sharded_state_dict(metadata=metadata), "iteration": 7}, str(saved))
    if rank == 0:
        torch.save(logits, f"{folder}/logits.pt")
    dist.barrier()
    for worker in multiprocessing.active_children():  # of the save; they would outlive the rank
        worker.kill()
        worker.join()
    os._exit(0)  # Megatron's own threads would keep the process


def transformers_config(case):
    import transformers

    name, more, _, _ = CASES[case]
    return getattr(transformers, name)(**{**BASE, **more})


def difference(program, folder, case):
    import transformers

    config = transformers_config(case)
    config.architectures = [type(config).__name__.replace("Config", "ForCausalLM")]
    config.save_pretrained(folder / "config")
    done = subprocess.run([program, "-q", "merge", f"megatron:{folder}/saved", "-o", folder / "merged",
                           "--model-config", folder / "config/config.json"], check=False, capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    found, info = transformers.AutoModelForCausalLM.from_pretrained(folder / "merged", dtype=torch.float32,
                                                                    output_loading_info=True)
    if info["missing_keys"] or info["unexpected_keys"]:
        return f"missing {info['missing_keys']}, unexpected {info['unexpected_keys']}"
    with torch.no_grad():
        logits = found.eval()(TOKENS).logits
    expected = torch.load(folder / "logits.pt")[..., :60]
    far = (logits - expected).abs().max() / expected.abs().max()
    return "" if far < 1e-5 else f"the logits differ by {far:.2g} of the largest"


def main():
    import megatron.core

    failed = 0
    for label, (case, tp, pp, ep) in {**{case: (case, 2, 0, 1) for case in CASES}, **RANK_FILES}.items():
        with tempfile.TemporaryDirectory() as name:
            save = ((save_rank, (tp, case, name), tp) if pp == 0 else
                    (save_rank_file, (tp, pp, ep, case, name), tp * pp * ep))
            multiprocessing.spawn(save[0], save[1], nprocs=save[2])
            problem = difference(sys.argv[1], pathlib.Path(name), case)
        failed += bool(problem)
        label = f"megatron-core {megatron.core.__version__}: {label}"
        print(f"FAIL {label}: {problem}" if problem else f"PASS {label}", flush=True)
    return min(1, failed)


if __name__ == "__main__":
    sys.exit(main())
