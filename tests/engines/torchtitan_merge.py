"""Compares what merge makes of torchtitan's checkpoints with torchtitan's own adapter, or writes the golden tables.

usage: torchtitan_merge.py check SHARDTOOL    has transformers load what was merged, too
       torchtitan_merge.py tables SHARDTOOL   checks, and writes tests/layouts/read/torchtitan@0.3/MODEL.json

Two processes shard a model of torchtitan with FSDP2 and save it as torchtitan's CheckpointManager does: the model's
tensors at the top, with the optimizer's state, the scheduler's and the step beside them. StateDictAdapter.to_hf makes
the expected tensors of the whole model. The same checkpoint is read under the names of torchtitan 0.2, too.
"""
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", OMP_NUM_THREADS="1")
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as multiprocessing
from safetensors.torch import load_file, save_file

import sharded_models
import sharded_state

warnings.filterwarnings("ignore")
LAYOUT = "torchtitan@0.3"
GOLDEN = sharded_state.GOLDEN.parent / "read" / LAYOUT
BASE = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4,
        "head_dim": 16, "vocab_size": 120, "max_position_embeddings": 64, "tie_word_embeddings": False}
EXPERTS = {"moe_intermediate_size": 48, "num_experts_per_tok": 2}
LATENTS = {**EXPERTS, "num_key_value_heads": 8, "n_routed_experts": 4, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
           "first_k_dense_replace": 1, "kv_lora_rank": 24, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16}
# name: (class of transformers, its arguments)
MODELS = {
    "llama": ("LlamaConfig", {"head_dim": 8}),
    "llama_tied": ("LlamaConfig", {"head_dim": 8, "tie_word_embeddings": True}),
    "qwen3": ("Qwen3Config", {}),
    "qwen3_moe": ("Qwen3MoeConfig", {**EXPERTS, "num_experts": 4}),
    "deepseek_v3": ("DeepseekV3Config", {**LATENTS, "q_lora_rank": 32}),
    "deepseek_v3_whole_queries": ("DeepseekV3Config", {**LATENTS, "q_lora_rank": None}),
}
OLD_NAMES = {"qkv_linear.": "", "lm_head.": "output.", "routed_experts.inner_experts.": "experts.", "expert_bias_E": "expert_bias",
             "w1_EFD": "w1", "w2_EDF": "w2", "w3_EFD": "w3"}


def transformers_config(kind):
    import transformers

    name, arguments = MODELS[kind]
    config = getattr(transformers, name)(**{**BASE, **arguments})
    config.architectures = [name.replace("Config", "ForCausalLM")]
    return config


def layers_of(kind, config):
    """Returns torchtitan's configuration of the layers, and the classes of its model and adapter."""
    sizes = {"n_layers": config.num_hidden_layers, "dim": config.hidden_size, "n_heads": config.num_attention_heads,
             "attn_backend": "flex"}
    grouped = {**sizes, "n_kv_heads": config.num_key_value_heads}
    if kind.startswith("llama"):
        from torchtitan.models import llama3 as model
        from torchtitan.models.common import ComplexRoPE

        layers = model._build_llama3_layers(**grouped, hidden_dim=config.intermediate_size,
                                            rope=ComplexRoPE.Config(dim=config.head_dim, max_seq_len=64))
        return layers, model.Llama3Model, model.Llama3StateDictAdapter
    if kind.startswith("qwen3"):
        from torchtitan.models import qwen3 as model
        from torchtitan.models.common import CosSinRoPE

        rope = CosSinRoPE.Config(dim=config.head_dim, max_seq_len=64)
        if kind == "qwen3":
            layers = model._build_qwen3_layers(**grouped, head_dim=config.head_dim, hidden_dim=config.intermediate_size, rope=rope)
        else:
            layers = model._build_qwen3_moe_layers(
                **grouped, head_dim=config.head_dim, moe_hidden_dim=config.moe_intermediate_size, num_experts=config.num_experts,
                top_k=config.num_experts_per_tok, moe_comm_backend="standard", rope=rope)
        return layers, model.Qwen3Model, model.Qwen3StateDictAdapter
    from torchtitan.models import deepseek_v3 as model
    from torchtitan.models.common import ComplexRoPE

    layers = model._build_dsv3_layers(
        **sizes, n_dense_layers=config.first_k_dense_replace, q_lora_rank=config.q_lora_rank or 0, kv_lora_rank=config.kv_lora_rank,
        qk_nope_head_dim=config.qk_nope_head_dim, qk_rope_head_dim=config.qk_rope_head_dim, v_head_dim=config.v_head_dim,
        mscale=1.0, dense_hidden_dim=config.intermediate_size, moe_hidden_dim=config.moe_intermediate_size,
        num_experts=config.n_routed_experts, num_shared_experts=config.n_shared_experts, router_top_k=config.num_experts_per_tok,
        router_score_func="sigmoid", moe_comm_backend="standard", non_blocking_capacity_factor=None,
        rope=ComplexRoPE.Config(dim=config.qk_rope_head_dim, max_seq_len=64))
    return layers, model.DeepSeekV3Model, model.DeepSeekV3StateDictAdapter


def make(kind):
    """Returns a model of torchtitan with drawn values, and its adapter."""
    from torchtitan.models.common import Embedding, Linear, RMSNorm

    config = transformers_config(kind)
    layers, model_class, adapter_class = layers_of(kind, config)
    vocabulary, dim = config.vocab_size, config.hidden_size
    titan = model_class.Config(
        dim=dim, vocab_size=vocabulary, layers=layers, norm=RMSNorm.Config(normalized_shape=dim),
        tok_embeddings=Embedding.Config(num_embeddings=vocabulary, embedding_dim=dim),
        lm_head=Linear.Config(in_features=dim, out_features=vocabulary),
        **({"enable_weight_tying": True} if config.tie_word_embeddings else {}))
    model = titan.build()
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for value in list(model.parameters()) + list(model.buffers()):
            if value.is_floating_point():
                value.copy_(torch.randn(value.shape, generator=generator))
    return model, adapter_class(titan, None)


def old_name(name):
    for new, old in OLD_NAMES.items():
        name = name.replace(new, old)
    return name


def save_rank(rank, kind, folder):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torchtitan.components.optimizer.utils import get_flat_optim_state_dict, init_optim_state

    dist.init_process_group("gloo", rank=rank, world_size=2, init_method=f"file://{folder}/meet")
    model, adapter = make(kind)
    if rank == 0:
        whole = {name: value.clone() for name, value in model.state_dict().items()}
        expected = {name: value.contiguous() for name, value in adapter.to_hf(whole).items()}
        torch.save(expected, f"{folder}/expected.pt")
    fully_shard(model, mesh=init_device_mesh("cpu", (2,), mesh_dim_names=("fsdp",)))
    optimizer = torch.optim.AdamW(model.named_parameters())
    init_optim_state(optimizer)
    beside = {"optimizer": get_flat_optim_state_dict(optimizer), "lr_scheduler": {"last_epoch": 7},
              "train_state": {"step": torch.tensor(7)}, "dataloader": {"dp_rank_0": b"state"}}
    state = model.state_dict()
    dcp.save({**state, **beside}, checkpoint_id=f"{folder}/saved")
    dcp.save({**{old_name(name): value for name, value in state.items()}, **beside}, checkpoint_id=f"{folder}/saved as 0.2")
    dist.barrier()
    dist.destroy_process_group()


def difference(expected, found):
    """Returns the names of the tensors that differ. torchtitan writes the tied output, which transformers' files omit."""
    expected = dict(expected)
    if "lm_head.weight" not in expected:
        expected["lm_head.weight"] = expected["model.embed_tokens.weight"]
    if expected.keys() != found.keys():
        return f"other names: {sorted(expected.keys() ^ found.keys())[:3]}"
    return ", ".join(name for name in expected if not torch.equal(expected[name], found[name]))


def refusal_of_transformers(expected, folder):
    """Returns what transformers misses in the folder, or has another value of."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    if info["missing_keys"] or info["unexpected_keys"]:
        return f"missing {info['missing_keys']}, unexpected {info['unexpected_keys']}"
    own = model.state_dict()
    return ", ".join(name for name in expected if name in own and not torch.equal(own[name], expected[name]))


def check(program, kind, folder):
    """Yields a label and what is wrong per form of the checkpoint."""
    multiprocessing.spawn(save_rank, (kind, str(folder)), nprocs=2)
    transformers_config(kind).save_pretrained(folder / "config")
    expected = torch.load(folder / "expected.pt")
    for form in ("saved", "saved as 0.2"):
        merged = folder / f"merged {form}"
        done = subprocess.run([program, "-q", "merge", f"torchtitan:{folder / form}", "-o", merged,
                               "--model-config", folder / "config/config.json"], check=False, capture_output=True, text=True)
        problem = done.stderr if done.returncode else (difference(expected, load_file(merged / "model.safetensors")) or
                                                       refusal_of_transformers(expected, merged))
        yield f"torchtitan {importlib.metadata.version('torchtitan')}: {kind} {form}", problem


def table_of(kind, folder):
    """Returns the tensors of torchtitan's files, and what the adapter makes of values drawn from their names."""
    model, adapter = make(kind)
    config = json.loads((folder / "config/config.json").read_text())
    config.pop("transformers_version", None)
    tensors, drawn = {}, {}
    for name, value in sorted(model.state_dict().items()):
        tensors[name] = ["BF16", list(value.shape)]
        drawn[name] = torch.frombuffer(bytearray(sharded_models.distinct_bytes(name, 2 * value.numel())),
                                       dtype=torch.bfloat16).reshape(value.shape)
    save_file({name: value.contiguous() for name, value in adapter.to_hf(drawn).items()}, folder / "drawn.safetensors")
    return {"layout": LAYOUT, "config": config, "tensors": tensors, "merged": sharded_models.read(folder / "drawn.safetensors")}


def to_text(table):
    """Returns the table with a line per tensor."""
    rows = lambda key: ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(table[key].items()))
    return (f'{{"layout": "{table["layout"]}",\n"config": {json.dumps(table["config"])},\n'
            f'"tensors": {{\n{rows("tensors")}}},\n"merged": {{\n{rows("merged")}}}}}\n')


def main():
    mode, program = sys.argv[1:]
    failed = 0
    for kind in MODELS:
        with tempfile.TemporaryDirectory() as name:
            wrong = 0
            for label, problem in check(program, kind, pathlib.Path(name)):
                wrong += bool(problem)
                print(f"FAIL {label}: {problem}" if problem else f"PASS {label}", flush=True)
            failed += wrong
            if mode == "tables" and not wrong:
                GOLDEN.mkdir(parents=True, exist_ok=True)
                (GOLDEN / f"{kind}.json").write_text(to_text(table_of(kind, pathlib.Path(name))))
    return min(1, failed)


if __name__ == "__main__":
    sys.exit(main())
