"""Families that are variations of others and came last. See families.py."""

from expert_families import EXPERT_FFN, EXPERTS, LATENT, LATENT_CUTS, MOE, REFUSED, ROUTED, next_token_layer
from families import DENSE, DIVIDED, EXPERT_MESHES, FEW_EXPERTS, HIDDEN, LLAMA, PER_HEAD, QK_NORM, Family, Q
from further_families import CHOOSING
from recent_families import MLP_BIASES, PADDED
from slicing import features, on_every_device, q_rows, whole

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


# DeepseekV4Attention: 8 groups of 2 heads, each with a projection of its own (DeepseekV4GroupedLinear)
HEAD_GROUPS, GROUP_HEADS, GROUP_RANK, STREAMS = 8, 2, 6, 2
GROUPS = q_rows(HEAD_GROUPS, HEAD_GROUPS)
COMPRESSED = [
    (r"(model\.embed_tokens|head)\.weight", features, whole),
    (r"model\.norm\.weight", whole),
    (r".*hc_head.*", on_every_device),
    (r".*\b(attn|ffn)_norm\.weight", whole),
    (r".*\.attn\.(q_norm|kv_norm|norm)\.weight", whole),
    (r".*\.attn\.(wq_a|wkv)\.weight", whole, whole),
    (r".*\.attn\.(wq_b|wo_a)\.weight", GROUPS, whole),
    (r".*\.attn\.wo_b\.weight", whole, GROUPS),
    (r".*\.attn\.attn_sink", GROUPS),
    (r".*\.attn\.(indexer|compressor)\..*", on_every_device),
    (r".*\.hc_(attn|ffn)_(fn|base|scale)", on_every_device),
    (r".*\.ffn\.gate\.(weight|bias|tid2eid)", on_every_device),
    (r".*\.ffn\.(experts\.\d+|shared_experts)\.w[13]\.weight", features, whole),
    (r".*\.ffn\.(experts\.\d+|shared_experts)\.w2\.weight", whole, features),
    (r"mtp\.0\.([eh]_proj|[eh]norm|norm)\.weight", on_every_device),
]


def compressing():
    sizes = dict(
        num_hidden_layers=3,
        hidden_size=HIDDEN,
        moe_intermediate_size=EXPERT_FFN,
        num_attention_heads=HEAD_GROUPS * GROUP_HEADS,
        head_dim=8,
        q_lora_rank=10,
        n_routed_experts=EXPERTS,
        num_experts_per_tok=2,
        vocab_size=101,
        compress_ratios=[0, 4, 128],
        num_hash_layers=1,
        qk_rope_head_dim=4,
        o_groups=HEAD_GROUPS,
        o_lora_rank=GROUP_RANK,
        index_n_heads=4,
        index_head_dim=4,
        index_topk=3,
        sliding_window=8,
        hc_mult=STREAMS,
    )
    square = HIDDEN, HIDDEN
    outer = [("e_proj.weight", *square), ("h_proj.weight", *square)]
    outer += [(f"{name}.weight", HIDDEN) for name in ("enorm", "hnorm", "norm")]
    outer += [("hc_head_fn", STREAMS, STREAMS * HIDDEN), ("hc_head_base", STREAMS), ("hc_head_scale", 1), ("ffn.gate.bias", EXPERTS)]

    def further(tensors):
        layer = next_token_layer("model.layers.0.", "mtp.0.", *[("mtp.0." + name, *shape) for name, *shape in outer])
        # The library saves the norm of the keys under a name that it does not read.
        return [
            [name.replace("attn.norm", "attn.kv_norm"), *rest] for name, *rest in layer(tensors) if "tid2eid" not in name
        ]

    yield Family(
        "deepseek_v4",
        "deepseek_v4",
        "DeepseekV4ForCausalLM",
        "DeepseekV4Config",
        sizes | PADDED,
        COMPRESSED,
        meshes=EXPERT_MESHES,
        refused=PER_HEAD | FEW_EXPERTS,
        layers={"": 3},
        published=further,
    )
