"""Families that are variations of others and came last. See families.py."""

from expert_families import EXPERT_FFN, EXPERTS, LATENT, LATENT_CUTS, MOE, REFUSED, ROUTED
from families import DENSE, DIVIDED, EXPERT_MESHES, LLAMA, PER_HEAD, QK_NORM, Family, Q
from further_families import CHOOSING
from recent_families import MLP_BIASES, PADDED
from slicing import features, whole

LOCAL = dict(layer_types=["sliding_attention", "full_attention"])
# HYV3MoE and AfmoeSparseMoeBlock: a correction beside the router, shared experts that are one MLP
PUBLISHED_HYV3 = [
    (r".*layers\.\d+\.mlp\.router\.gate\.weight", whole, whole),
    (r".*layers\.\d+\.mlp\.expert_bias", whole),
    (r".*layers\.\d+\.mlp\.shared_mlp\.(gate|up)_proj\.weight", features, whole),
    (r".*layers\.\d+\.mlp\.shared_mlp\.down_proj\.weight", whole, features),
]
# AfmoeAttention.forward: o_proj(output * sigmoid(gate_proj(x)))
AFMOE = [(r".*self_attn\.gate_proj\.weight", Q, whole)]
DENSE_LATENT = {key: value for key, value in LATENT.items() if "expert" not in key and key != "first_k_dense_replace"}


def dense():
    biased = dict(attention_bias=True, mlp_bias=True)
    reduced = (r".*(o_proj|down_proj)\.bias",)
    for name, preset, model, config, sizes in (
        ("internlm3", "llama", "Llama", "InternLM3", DENSE | biased),
        ("iquestcoder", "llama", "Llama", "IQuestCoder", DENSE),
        ("cwm", "cwm", "Cwm", "Cwm", DENSE | LOCAL),
        ("jais2", "jais2", "Jais2", "Jais2", DENSE),
        ("helium", "helium", "Helium", "Helium", DIVIDED | biased | dict(head_dim=6)),
        ("vaultgemma", "vaultgemma", "VaultGemma", "VaultGemma", DENSE),
        ("hyperclovax", "hyperclovax", "HyperCLOVAX", "HyperCLOVAX", DENSE | biased),
    ):
        cuts = LLAMA + MLP_BIASES + [(r".*layers\.\d+\.post_norm[12]\.weight", whole)]
        model, config = f"{model}ForCausalLM", f"{config}Config"
        yield Family(name, preset, model, config, sizes | PADDED, cuts, reduced=reduced)
    for name, preset, model in (("minicpm3", "minicpm3", "MiniCPM3"), ("youtu", "deepseek_v3", "Youtu")):
        sizes = DENSE_LATENT | PADDED
        yield Family(name, preset, f"{model}ForCausalLM", f"{model}Config", sizes, LATENT_CUTS, refused=PER_HEAD)


def mixtures():
    shared = MOE | dict(num_shared_experts=2)
    solar = dict(moe_intermediate_size=EXPERT_FFN, n_routed_experts=EXPERTS, num_experts_per_tok=2, n_shared_experts=2)
    olmo = dict(num_experts=EXPERTS, num_experts_per_tok=2, intermediate_size=EXPERT_FFN)
    routed = LLAMA + QK_NORM + ROUTED + CHOOSING + PUBLISHED_HYV3
    for name, model, sizes, cuts in (
        ("hy_v3", "HYV3", DENSE | shared, routed),
        ("solar_open", "SolarOpen", DENSE | solar, routed),
        ("afmoe", "Afmoe", DENSE | shared | LOCAL | dict(num_dense_layers=1), routed + AFMOE),
        ("flex_olmo", "FlexOlmo", DIVIDED | olmo, routed),
    ):
        for suffix, stacked in (("", False), ("_stacked", True)):
            yield Family(
                name + suffix,
                name,
                f"{model}ForCausalLM",
                f"{model}Config",
                sizes | PADDED,
                cuts,
                meshes=EXPERT_MESHES,
                refused=REFUSED,
                stacked=stacked,
            )
