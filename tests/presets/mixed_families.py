"""Families whose layers differ in more than a window: in the number of their heads, or in the kind of their attention."""

from expert_families import EXPERT_FFN, EXPERTS, LATENT, LATENT_CUTS, LATENT_MESHES, REFUSED, ROUTED, next_token_layer
from families import DENSE, EXPERT_MESHES, HEADS, HIDDEN, KV, LLAMA, Family
from further_families import CHOOSING
from slicing import features, kv_rows, on_every_device, q_rows, whole

# MiMoV2FlashAttention: the layers with a window, here the second, have twice the heads of keys and values
LOCAL_Q, LOCAL_K = q_rows(HEADS, 2 * KV), kv_rows(HEADS, 2 * KV)
MIMO = [
    (r".*layers\.1\.self_attn\.q_proj\.weight", LOCAL_Q, whole),
    (r".*layers\.1\.self_attn\.[kv]_proj\.weight", LOCAL_K, whole),
    (r".*layers\.1\.self_attn\.q_proj\.bias", LOCAL_Q),
    (r".*layers\.1\.self_attn\.[kv]_proj\.bias", LOCAL_K),
    (r".*layers\.1\.self_attn\.o_proj\.weight", whole, LOCAL_Q),
    (r".*self_attn\.(attention_sink_bias|sinks)", LOCAL_Q),
    (r"model\.mtp\..*", on_every_device),
]


def mixtures():
    mimo = dict(
        head_dim=6,
        v_head_dim=5,
        moe_intermediate_size=EXPERT_FFN,
        n_routed_experts=EXPERTS,
        num_experts_per_tok=2,
        attention_bias=True,
        layer_types=["full_attention", "sliding_attention"],
        mlp_layer_types=["dense", "sparse"],
        pad_token_id=None,
    )
    further = next_token_layer("model.layers.0.", "model.mtp.layers.0.", ("model.mtp.layers.0.eh_proj.weight", HIDDEN, 2 * HIDDEN))
    for name, stacked, published in (("mimo_v2_flash", False, further), ("mimo_v2_flash_stacked", True, None)):
        yield Family(
            name,
            "mimo_v2_flash",
            "MiMoV2FlashForCausalLM",
            "MiMoV2FlashConfig",
            DENSE | mimo,
            LLAMA + ROUTED + CHOOSING + MIMO,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
            published=published,
        )


# KimiLinearDeltaAttention, here the first layer: three projections, convolutions and low-rank gates of all heads
LINEAR_HEADS = 12
DELTA = q_rows(LINEAR_HEADS, LINEAR_HEADS)
KIMI = [
    (r".*layers\.0\.self_attn\.([qkv]|[fg]_b|b)_proj\.weight", DELTA, whole),
    (r".*layers\.0\.self_attn\.[fg]_a_proj\.weight", whole, whole),
    (r".*layers\.0\.self_attn\.[qkv]_conv1d\.weight", DELTA, whole, whole),
    (r".*layers\.0\.self_attn\.dt_bias", DELTA),
    (r".*layers\.0\.self_attn\.A_log", whole, whole, DELTA, whole),
    (r".*layers\.0\.self_attn\.o_norm\.weight", whole),
    (r".*layers\.0\.self_attn\.o_proj\.weight", whole, DELTA),
    (r".*block_sparse_moe\.(shared_experts\.)?(gate|up)_proj\.weight", features, whole),
    (r".*block_sparse_moe\.(shared_experts\.)?down_proj\.weight", whole, features),
    (r".*block_sparse_moe\.experts\.\d+\.w[13]\.weight", features, whole),
    (r".*block_sparse_moe\.experts\.\d+\.w2\.weight", whole, features),
    (r".*block_sparse_moe\.gate\.weight", whole, whole),
    (r".*block_sparse_moe\.gate\.e_score_correction_bias", whole),
]


def hybrids():
    kimi = dict(
        {key: value for key, value in LATENT.items() if key not in ("n_routed_experts", "first_k_dense_replace")},
        num_local_experts=EXPERTS,
        layer_types=["linear_attention", "full_attention"],
        mlp_layer_types=["dense", "sparse"],
        linear_num_heads=LINEAR_HEADS,
        linear_head_dim=5,
        pad_token_id=None,
        n_group=1,
        topk_group=1,
    )
    yield Family(
        "kimi_linear",
        "kimi_linear",
        "KimiLinearForCausalLM",
        "KimiLinearConfig",
        kimi,
        LATENT_CUTS + KIMI,
        **LATENT_MESHES,
    )
