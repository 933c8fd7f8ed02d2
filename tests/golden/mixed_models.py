"""Small models whose layers differ in more than a window: other heads, or another kind of attention."""

from sizes import FEW_EXPERTS, GLM_MOE, LATENT, SIZES

# What LongCat-Flash has under other names, or not.
OTHER_NAMES = (
    "num_hidden_layers",
    "intermediate_size",
    "n_shared_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "first_k_dense_replace",
)
LAGUNA = dict(
    SIZES,
    **FEW_EXPERTS,
    head_dim=10,
    shared_expert_intermediate_size=20,
    intermediate_size=40,
    sliding_window=7,
    moe_routed_scaling_factor=1.7,
    rope_parameters=dict(
        full_attention=dict(
            rope_type="yarn",
            rope_theta=1000.0,
            partial_rotary_factor=0.6,
            factor=4.0,
            original_max_position_embeddings=16,
        ),
        sliding_attention=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=1.0),
    ),
)
DEEPSEEK_V4 = dict(
    vocab_size=64,
    hidden_size=20,
    moe_intermediate_size=6,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=1,
    head_dim=12,
    q_lora_rank=16,
    num_experts_per_tok=2,
    n_routed_experts=6,
    routed_scaling_factor=1.7,
    max_position_embeddings=64,
    rope_theta=100.0,
    compress_rope_theta=1000.0,
    hc_sinkhorn_iters=3,
    hc_eps=1e-2,
    swiglu_limit=1.0,
    sliding_window=4,
    o_groups=2,
    o_lora_rank=10,
    index_n_heads=8,
    index_head_dim=8,
    index_topk=3,
    rms_norm_eps=1e-3,
    pad_token_id=None,
)

# One more head of keys and values than devices, values narrower than keys, and sinks in layers with a window.
MIXED_MODELS = {
    "mimo_v2_flash": (
        "MiMoV2FlashConfig",
        dict(
            {key: value for key, value in GLM_MOE.items() if key not in ("first_k_dense_replace", "rope_parameters")},
            num_attention_heads=6,
            num_key_value_heads=3,
            head_dim=12,
            v_head_dim=10,
            n_group=2,
            topk_group=1,
            sliding_window=9,
            attention_value_scale=0.7,
            layer_types=["full_attention", "sliding_attention"],
            mlp_layer_types=["dense", "sparse"],
            rope_parameters=dict(
                full_attention=dict(rope_type="default", rope_theta=100000.0, partial_rotary_factor=0.334),
                sliding_attention=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.7),
            ),
        ),
    ),
    # Two kinds of heads of queries, which all have the same keys; a gate for each head.
    "laguna": (
        "LagunaConfig",
        dict(
            LAGUNA,
            gating="per-head",
            num_attention_heads_per_layer=[4, 6],
            layer_types=["full_attention", "sliding_attention"],
        ),
    ),
    "laguna_features": (
        "LagunaConfig",
        dict(LAGUNA, gating="per-element", mlp_layer_types=["sparse", "sparse"], attention_bias=True),
    ),
    # A gate between a least decay and none, groups of experts, and one head of queries for each of the gate.
    "bailing_hybrid": (
        "BailingHybridConfig",
        dict(
            {key: value for key, value in LATENT.items() if key not in ("n_routed_experts", "first_k_dense_replace")},
            head_dim=10,
            num_local_experts=8,
            moe_intermediate_size=8,
            intermediate_size=40,
            n_group=2,
            topk_group=1,
            layer_group_size=2,
            short_conv_kernel_size=3,
            kda_lower_bound=-2.0,
            first_k_dense_replace=1,
            num_mtp_layers=0,
            rope_theta=1000.0,
        ),
    ),
    "longcat_flash": (
        "LongcatFlashConfig",
        dict(
            {key: value for key, value in LATENT.items() if key not in OTHER_NAMES},
            num_layers=2,
            hidden_size=24,
            q_lora_rank=16,
            head_dim=8,
            ffn_hidden_size=28,
            expert_ffn_hidden_size=12,
            moe_topk=3,
            n_routed_experts=4,
            zero_expert_num=3,
            rope_parameters=dict(rope_type="default", rope_theta=1000.0),
        ),
    ),
    # Four streams, and a layer that sees what the index of the one before it chose.
    "hy_v4": (
        "HYV4Config",
        dict(
            {key: value for key, value in LATENT.items() if key != "first_k_dense_replace"},
            index_n_heads=10,
            index_head_dim=16,
            n_routed_experts=6,
            num_experts_per_tok=2,
            hidden_size=24,
            intermediate_size=40,
            q_lora_rank=16,
            n_shared_experts=1,
            index_topk=6,
            mlp_layer_types=["dense", "sparse"],
            indexer_types=["full", "shared"],
            hc_magnitude=1.3,
            hc_eps=1e-2,
            swiglu_limit=1.0,
            rope_parameters=dict(rope_type="default", rope_theta=1000.0),
        ),
    ),
    # Windows alone, entries of three tokens of which an index chooses, entries of five; experts by words and by scores.
    "deepseek_v4": (
        "DeepseekV4Config",
        dict(
            DEEPSEEK_V4,
            layer_types=["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"],
            compress_rates=dict(compressed_sparse_attention=3, heavily_compressed_attention=5),
            mlp_layer_types=["hash_moe", "moe", "hash_moe"],
            partial_rotary_factor=0.34,
            rope_parameters=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16),
        ),
    ),
    "deepseek_v4_flash": (
        "DeepseekV4Config",
        dict(
            DEEPSEEK_V4,
            compress_ratios=[4, 128, 0],
            compress_rate_csa=2,
            compress_rate_hca=4,
            num_hash_layers=1,
            qk_rope_head_dim=6,
            o_lora_rank=8,
            max_position_embeddings=128,
            rope_scaling=dict(type="yarn", factor=4.0, beta_fast=8, beta_slow=1, original_max_position_embeddings=32),
        ),
    ),
    "kimi_linear": (
        "KimiLinearConfig",
        dict(
            {key: value for key, value in LATENT.items() if key not in ("n_routed_experts", "first_k_dense_replace")},
            num_local_experts=8,
            moe_intermediate_size=8,
            intermediate_size=40,
            n_group=2,
            topk_group=1,
            layer_types=["linear_attention", "full_attention"],
            mlp_layer_types=["dense", "sparse"],
            linear_num_heads=3,
            linear_head_dim=10,
            linear_conv_kernel_dim=3,
        ),
    ),
}
