"""Values of single functions from the transformers library: activations, routers, rotation frequencies.

write(path) makes one JSON file; every number in it is f32 as the library computed it, but for the inputs of
rotation_cases, which are what config.json would say.
"""

import json
import math

import numpy as np
import torch
import transformers
from transformers.activations import ACT2FN
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2TopkRouter
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3TopkRouter, yarn_apply_mscale
from transformers.models.deepseek_v4.modeling_deepseek_v4 import DeepseekV4TopKRouter
from transformers.models.ernie4_5_moe.modeling_ernie4_5_moe import Ernie4_5_MoeTopKRouter
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts, GptOssTopKRouter
from transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense import HunYuanDenseV1RotaryEmbedding
from transformers.models.kolibri1.modeling_kolibri1 import Kolibri1TopKRouter
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.llama4.modeling_llama4 import Llama4Router
from transformers.models.mixtral.modeling_mixtral import MixtralTopKRouter
from transformers.models.phi3.modeling_phi3 import Phi3RotaryEmbedding
from transformers.models.phimoe.modeling_phimoe import PhimoeRotaryEmbedding, PhimoeTopKRouter
from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeTopKRouter
from transformers.models.t5.modeling_t5 import T5Attention

# Functions of ACT2FN without learned parameters.
ACTIVATIONS = [name for name in ACT2FN.keys() if name not in ("prelu", "xielu", "sqrtsoftplus")]


def numbers(tensor):
    """Shortest decimals that are the same f32."""
    return [float(str(np.float32(value))) for value in tensor.detach().reshape(-1).tolist()]


def activations():
    x = torch.cat([torch.linspace(-6, 6, 49), torch.tensor([-30.0, -12.0, -1e-3, 1e-3, 12.0, 30.0])])
    return {"x": numbers(x), "y": {name: numbers(ACT2FN[name](x)) for name in sorted(ACTIVATIONS)}}


def gated_pairs():
    gate, up = torch.meshgrid(torch.linspace(-9, 9, 13), torch.linspace(-9, 9, 7), indexing="ij")
    gate, up = gate.reshape(-1), up.reshape(-1)
    experts = GptOssExperts(
        transformers.GptOssConfig(num_hidden_layers=1, num_local_experts=1, hidden_size=4, intermediate_size=4)
    )
    out = experts._apply_gate(torch.stack([gate, up], dim=-1).reshape(-1))
    return {"gate": numbers(gate), "up": numbers(up), "out": numbers(out)}


ROUTERS = [
    dict(kind="softmax_topk", top_k=2, renormalise=True, router=MixtralTopKRouter, config="MixtralConfig"),
    dict(kind="softmax_topk", top_k=3, renormalise=True, router=Qwen2MoeTopKRouter, config="Qwen2MoeConfig"),
    dict(kind="softmax_topk", top_k=3, renormalise=False, router=Qwen2MoeTopKRouter, config="Qwen2MoeConfig"),
    dict(kind="topk_softmax", top_k=4, renormalise=True, router=GptOssTopKRouter, config="GptOssConfig"),
    dict(
        kind="group_max",
        top_k=3,
        groups=4,
        top_groups=2,
        scale=16.0,
        router=DeepseekV2TopkRouter,
        config="DeepseekV2Config",
    ),
    dict(kind="group_max", top_k=4, scale=1.0, router=DeepseekV2TopkRouter, config="DeepseekV2Config"),
    dict(
        kind="sigmoid_groups",
        top_k=4,
        groups=4,
        top_groups=2,
        scale=2.5,
        renormalise=True,
        router=DeepseekV3TopkRouter,
        config="DeepseekV3Config",
    ),
    dict(
        kind="sigmoid_groups",
        top_k=4,
        groups=1,
        top_groups=1,
        scale=1.0,
        renormalise=False,
        router=DeepseekV3TopkRouter,
        config="DeepseekV3Config",
    ),
    dict(kind="topk_sigmoid", top_k=3, router=Llama4Router, config="Llama4TextConfig"),
    dict(
        kind="corrected_softmax",
        top_k=4,
        renormalise=True,
        least_sum=0.4,
        router=Ernie4_5_MoeTopKRouter,
        config="Ernie4_5_MoeConfig",
    ),
    dict(kind="sparse_mixer", top_k=2, jitter=0.01, router=PhimoeTopKRouter, config="PhimoeConfig"),
    dict(kind="sparse_mixer", top_k=2, jitter=0.4, router=PhimoeTopKRouter, config="PhimoeConfig"),
    dict(kind="corrected_sigmoid", top_k=3, renormalise=True, router=Kolibri1TopKRouter, config="Kolibri1Config"),
    dict(kind="corrected_sigmoid", top_k=4, router=Kolibri1TopKRouter, config="Kolibri1Config"),
    dict(
        kind="root_softplus",
        top_k=4,
        renormalise=True,
        scale=1.7,
        router=DeepseekV4TopKRouter,
        config="DeepseekV4Config",
    ),
]
N_EXPERTS = 12
CORRECTED = ("sigmoid_groups", "corrected_softmax", "corrected_sigmoid", "root_softplus")


def routed(case, random):
    groups, top_groups = case.get("groups", 0), case.get("top_groups", 0)
    says = dict(hidden_size=N_EXPERTS, num_experts_per_tok=case["top_k"], norm_topk_prob=case.get("renormalise", False))
    says[
        (
            "n_routed_experts"
            if "Deepseek" in case["config"]
            else "num_experts" if "Qwen" in case["config"] else "num_local_experts"
        )
    ] = N_EXPERTS
    if "Deepseek" in case["config"]:
        says |= dict(routed_scaling_factor=case["scale"], num_attention_heads=4)
        if case["kind"] != "root_softplus":
            says |= dict(n_group=groups or None, topk_group=top_groups or None)
            says |= dict(topk_method="group_limited_greedy" if groups else "greedy")
    else:
        says |= dict(num_attention_heads=4, num_key_value_heads=4)
    if case["config"] not in ("DeepseekV2Config", "DeepseekV3Config", "Kolibri1Config"):
        says |= dict(intermediate_size=8)
    if "least_sum" in case:
        says |= dict(moe_num_experts=N_EXPERTS, moe_k=case["top_k"], moe_norm_min=case["least_sum"])
    if "jitter" in case:
        says |= dict(router_jitter_noise=case["jitter"])
    router = case["router"](getattr(transformers, case["config"])(**says)).eval()
    correction = torch.from_numpy(0.3 * random.standard_normal(N_EXPERTS)).float()
    with torch.no_grad():
        router.weight.copy_(torch.eye(N_EXPERTS))  # then the scores are the input
        corrected = getattr(router, "moe_statics", router)
        if hasattr(corrected, "e_score_correction_bias"):
            corrected.e_score_correction_bias.copy_(correction)
        if getattr(router, "bias", None) is not None:
            router.bias.zero_()
        scores = torch.from_numpy(1.5 * random.standard_normal((16, N_EXPERTS))).float()
        made = router(scores)
        if len(made) == 3:
            logits, weights, chosen = made
            gates = torch.zeros_like(scores).scatter(1, chosen, weights)
        else:
            gates, logits = made
            chosen = gates.nonzero()[:, 1].reshape(len(gates), -1)
        assert torch.equal(logits, scores)
    return {
        "kind": case["kind"],
        "experts": N_EXPERTS,
        "top_k": case["top_k"],
        "renormalise": case.get("renormalise", False),
        "scale": case.get("scale", 1.0),
        "groups": groups,
        "top_groups": top_groups,
        "least_sum": case.get("least_sum", 0.0),
        "jitter": case.get("jitter", 0.0),
        "correction": numbers(correction) if case["kind"] in CORRECTED else [],
        "scores": numbers(scores),
        "chosen": chosen.sort(dim=1).values.reshape(-1).tolist(),
        "gates": numbers(gates),
    }


LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)
PHI_SHORT = [1.0, 1.02, 1.03, 1.05, 1.08, 1.1, 1.15, 1.2]
PHI_LONG = [1.0, 1.3, 2.0, 4.5, 9.0, 20.0, 40.0, 60.0]
PHI = dict(short_factor=PHI_SHORT, long_factor=PHI_LONG)
DEEPSEEK_V3 = dict(
    factor=40, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0, original_max_position_embeddings=4096
)


def rotation_cases():
    """(name, config class, what config.json says, positions of the input)"""
    llama, phi, v3 = "LlamaConfig", "Phi3Config", "DeepseekV3Config"
    head = dict(head_dim=128, max_position_embeddings=131072)
    small = dict(head_dim=16, max_position_embeddings=64)
    phi_sizes = dict(
        hidden_size=64, num_attention_heads=4, max_position_embeddings=131072, original_max_position_embeddings=4096
    )
    old = dict(rope_theta=500000.0)
    new = lambda kind, **more: dict(rope_parameters=dict(rope_type=kind, rope_theta=500000.0, **more))
    yield "default", llama, dict(head), 24
    yield "default, old key of theta", llama, dict(head, **old), 24
    yield "default, new keys", llama, dict(head, **new("default")), 24
    yield "linear", llama, dict(head, **new("linear", factor=4.0)), 24
    yield "linear, old keys", llama, dict(head, **old, rope_scaling=dict(type="linear", factor=4.0)), 24
    yield "dynamic, short input", llama, dict(small, **new("dynamic", factor=2.0)), 24
    yield "dynamic, input beyond the trained length", llama, dict(small, **new("dynamic", factor=2.0)), 200
    yield "llama3", llama, dict(head, **new("llama3", **LLAMA3)), 24
    yield "llama3, old keys", llama, dict(head, **old, rope_scaling=dict(LLAMA3, rope_type="llama3")), 24
    yield "yarn", llama, dict(head, **new("yarn", factor=4.0, original_max_position_embeddings=32768)), 24
    yield "yarn, old keys", llama, dict(
        head, **old, rope_scaling=dict(type="yarn", factor=4.0, original_max_position_embeddings=32768)
    ), 24
    yield "yarn without the trained length", llama, dict(head, **new("yarn", factor=4.0)), 24
    yield "yarn with a given factor", llama, dict(
        head, **new("yarn", factor=4.0, original_max_position_embeddings=32768, attention_factor=1.25)
    ), 24
    yield "yarn, not truncated", llama, dict(
        head_dim=64,
        max_position_embeddings=131072,
        rope_parameters=dict(
            rope_type="yarn",
            rope_theta=150000.0,
            factor=32.0,
            beta_fast=32.0,
            beta_slow=1.0,
            truncate=False,
            original_max_position_embeddings=4096,
        ),
    ), 24
    yield "yarn of one pair's ramp", llama, dict(
        small, **new("yarn", factor=4.0, beta_fast=4.0, beta_slow=3.9, original_max_position_embeddings=64)
    ), 24
    yield "yarn, equal scales", v3, dict(
        qk_rope_head_dim=64,
        max_position_embeddings=163840,
        rope_theta=10000,
        rope_scaling=dict(DEEPSEEK_V3, type="yarn"),
    ), 24
    yield "yarn, unequal scales", v3, dict(
        qk_rope_head_dim=64,
        max_position_embeddings=163840,
        rope_theta=10000,
        rope_scaling=dict(DEEPSEEK_V3, type="yarn", mscale=0.707),
    ), 24
    yield "longrope, short input", phi, dict(phi_sizes, **new("longrope", **PHI)), 4096
    yield "longrope, long input", phi, dict(phi_sizes, **new("longrope", **PHI)), 4097
    yield "longrope, old keys", phi, dict(
        phi_sizes, **old, rope_scaling=dict(PHI, type="su", original_max_position_embeddings=4096)
    ), 24
    yield "longrope that is called yarn", phi, dict(phi_sizes, **old, rope_scaling=dict(PHI, type="yarn")), 24
    yield "longrope with given factors", llama, dict(
        small, **new("longrope", **PHI, factor=8.0, original_max_position_embeddings=32)
    ), 24
    yield "longrope with a given attention factor", llama, dict(
        small, **new("longrope", **PHI, attention_factor=1.5, original_max_position_embeddings=32)
    ), 24
    partial = dict(phi_sizes, partial_rotary_factor=0.5)
    yield "longrope, partial", phi, dict(
        partial, **old, rope_scaling=dict(type="longrope", short_factor=PHI_SHORT[:4], long_factor=PHI_LONG[:4])
    ), 4097
    yield "longrope with scales of its own", "PhimoeConfig", dict(
        phi_sizes, **new("longrope", **PHI, short_mscale=1.2, long_mscale=1.3, original_max_position_embeddings=32)
    ), 24
    yield "dynamic with an alpha", "HunYuanDenseV1Config", dict(
        head, **old, rope_scaling=dict(type="dynamic", alpha=1000.0, factor=1.0)
    ), 24
    yield "proportional", llama, dict(head, **new("proportional", partial_rotary_factor=0.25)), 24
    yield "proportional with a factor", llama, dict(
        head, **new("proportional", partial_rotary_factor=0.3, factor=8.0)
    ), 24


ROTARY = {
    "Phi3Config": Phi3RotaryEmbedding,
    "PhimoeConfig": PhimoeRotaryEmbedding,
    "HunYuanDenseV1Config": HunYuanDenseV1RotaryEmbedding,
}


def rotation(name, config_class, says, length):
    config = getattr(transformers, config_class)(**json.loads(json.dumps(says)))
    rotary = ROTARY.get(config_class, LlamaRotaryEmbedding)(config)
    cos, _ = rotary(torch.zeros(1, 1, 2), torch.arange(length)[None])  # chooses by the length of the input
    # This one does not keep what it multiplies with; the first position is not turned.
    factor = numbers(cos[0, 0, :1])[0] if config_class == "PhimoeConfig" else rotary.attention_scaling
    return {
        "name": name,
        "config": dict(says, model_type=config.model_type),
        "dims": 2 * rotary.inv_freq.numel(),
        "theta": float(config.rope_parameters["rope_theta"]),
        "length": length,
        "inverse": numbers(rotary.inv_freq),
        "attention_factor": float(factor),
        "score_factor": yarn_apply_mscale(config.rope_parameters, 1.0),
    }


# Buckets, the distance from which on all share one, and whether later positions have half of them.
BUCKETS = [(32, 128, True), (32, 128, False), (8, 20, True), (8, 20, False), (32, 1000, True)]


def position_buckets(buckets, most_distance, two_sided):
    first = -most_distance - 10
    distances = torch.arange(first, -first + 1)
    found = T5Attention._relative_position_bucket(distances, two_sided, buckets, most_distance)
    sizes = {"buckets": buckets, "most_distance": most_distance, "two_sided": two_sided}
    return dict(sizes, first=first, of=found.tolist())


# Buckets of both sides together, and the distance that would be the first behind the last one.
SIGNED_BUCKETS = [(512, 512), (16, 14), (16, 26), (64, 1000)]


def signed_buckets(buckets, most_distance):
    """Buckets by the distance from a key to its query; the library counts in the other direction."""
    first = -most_distance - 10
    distances = torch.arange(first, -first + 1)
    found = make_log_bucket_position(-distances, buckets // 2, most_distance).long() + buckets // 2
    sizes = {"buckets": buckets, "most_distance": most_distance, "two_sided": True}
    return dict(sizes, first=first, of=found.clamp(0, buckets - 1).tolist())


def write(path):
    random = np.random.default_rng(7)
    tables = {
        "transformers": transformers.__version__,
        "activations": activations(),
        "gpt_oss_glu": gated_pairs(),
        "routers": [routed(case, random) for case in ROUTERS],
        "rotations": [rotation(*case) for case in rotation_cases()],
        "position_buckets": [position_buckets(*case) for case in BUCKETS],
        "signed_buckets": [signed_buckets(*case) for case in SIGNED_BUCKETS],
    }
    lines = []
    for key, value in tables.items():
        if isinstance(value, list):
            rows = ",\n    ".join(json.dumps(row) for row in value)
            lines.append(f"  {json.dumps(key)}: [\n    {rows}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{path.name}: {path.stat().st_size} bytes")
