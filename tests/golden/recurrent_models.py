"""The small models with recurrences: linear attention and state spaces."""

from sizes import (
    DELTA,
    FALCON_H1,
    FEW_EXPERTS,
    GRANITE_HYBRID,
    LFM2,
    MAMBA,
    MAMBA2,
    NEMOTRON,
    SHALLOW_TOWER,
    SIZES,
    WIDE_HEADS,
    ZAMBA2,
)

OLMO_DELTA = {key: value for key, value in DELTA.items() if key != "rope_parameters"}
# Short convolutions, and attention with and without a window.
LFM3 = dict(
    {key: value for key, value in LFM2.items() if key != "rope_parameters"},
    num_hidden_layers=3,
    layer_types=["conv", "sliding_attention", "full_attention"],
    hidden_size=40,
    head_dim=12,
    intermediate_size=52,
    sliding_window=7,
    attention_bias=True,
)

# name -> the class of its config, and what that says
RECURRENT_MODELS = {
    "qwen3_next": (
        "Qwen3NextConfig",
        dict(WIDE_HEADS, **FEW_EXPERTS, **DELTA, shared_expert_intermediate_size=20, attention_bias=True),
    ),
    "qwen3_5": (
        "Qwen3_5Config",
        dict(text_config=dict(WIDE_HEADS | DELTA, vocab_size=72), vision_config=SHALLOW_TOWER, image_token_id=7),
    ),
    "qwen3_5_text": ("Qwen3_5TextConfig", dict(WIDE_HEADS, **DELTA, attention_bias=True)),
    "qwen3_5_moe": (
        "Qwen3_5MoeConfig",
        dict(
            text_config=dict(WIDE_HEADS | FEW_EXPERTS | DELTA, shared_expert_intermediate_size=12, vocab_size=48),
            vision_config=SHALLOW_TOWER,
            image_token_id=7,
        ),
    ),
    "mamba2": ("Mamba2Config", dict(MAMBA2, n_groups=4, use_bias=True)),
    "mamba2_one_group": ("Mamba2Config", dict(MAMBA2, n_groups=1, use_conv_bias=False)),
    "granitemoehybrid": (
        "GraniteMoeHybridConfig",
        dict(GRANITE_HYBRID, mamba_n_groups=1, position_embedding_type="rope", mamba_proj_bias=True),
    ),
    "granitemoehybrid_dense": ("GraniteMoeHybridConfig", dict(GRANITE_HYBRID, mamba_n_groups=2, num_local_experts=0)),
    "nemotron_h": (
        "NemotronHConfig",
        dict(NEMOTRON, layers_block_type=["linear_attention", "full_attention", "mlp"], mlp_bias=True, use_bias=True),
    ),
    "nemotron_h_moe": (
        "NemotronHConfig",
        dict(
            NEMOTRON,
            layers_block_type=["linear_attention", "moe", "full_attention", "moe"],
            n_routed_experts=6,
            num_experts_per_tok=2,
            moe_intermediate_size=12,
            moe_shared_expert_intermediate_size=20,
            moe_latent_size=20,
            routed_scaling_factor=1.7,
            n_group=3,
            topk_group=2,
        ),
    ),
    "bamba": (
        "BambaConfig",
        dict(
            SIZES,
            attn_layer_indices=[1],
            attention_bias=True,
            mlp_bias=True,
            mamba_n_heads=8,
            mamba_n_groups=2,
            mamba_d_state=10,
            mamba_proj_bias=True,
            time_step_limit=[0.4, 1.1],
        ),
    ),
    "falcon_h1": ("FalconH1Config", dict(FALCON_H1, mamba_n_groups=2, attention_bias=True, mlp_bias=True)),
    "zamba2": ("Zamba2Config", dict(ZAMBA2, use_mem_rope=True, use_shared_attention_adapter=True, add_bias_linear=True)),
    "zamba2_one_block": (
        "Zamba2Config",
        dict(ZAMBA2, layers_block_type=["hybrid", "hybrid"], num_hidden_layers=2, num_mem_blocks=1, mamba_ngroups=4),
    ),
    "falcon_h1_normed": ("FalconH1Config", dict(FALCON_H1, mamba_n_groups=2, mamba_rms_norm=True)),
    "lfm2": ("Lfm2Config", dict(LFM2, block_multiple_of=8, block_ffn_dim_multiplier=1.3)),
    "lfm2_plain": ("Lfm2Config", dict(LFM2, block_auto_adjust_ff_dim=False, tie_word_embeddings=False)),
    "lfm2_moe": (
        "Lfm2MoeConfig",
        dict(
            LFM2,
            **FEW_EXPERTS,
            intermediate_size=40,
            num_hidden_layers=3,
            layer_types=["conv", "full_attention", "conv"],
            num_dense_layers=1,
            routed_scaling_factor=1.7,
        ),
    ),
    "lfm3": (
        "Lfm3Config",
        dict(
            LFM3,
            rope_parameters=dict(
                full_attention=dict(rope_type="proportional", rope_theta=1000.0, partial_rotary_factor=0.5),
                sliding_attention=dict(rope_type="default", rope_theta=100.0),
            ),
        ),
    ),
    # Neither gates nor norms behind.
    "lfm3_plain": (
        "Lfm3Config",
        dict(
            LFM3,
            layer_types=["conv", "sliding_attention"],
            num_hidden_layers=2,
            conv_bias=False,
            use_sandwich_norm=False,
            use_attention_gate=False,
            tie_word_embeddings=False,
            rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=100.0)),
        ),
    ),
    "minimax": (
        "MiniMaxConfig",
        dict(
            WIDE_HEADS,
            head_dim=10,
            intermediate_size=12,
            num_local_experts=6,
            num_experts_per_tok=2,
            layer_types=["linear_attention", "full_attention"],
            block_size=5,
            linear_attn_alpha_factor=0.9,
            linear_attn_beta_factor=1.3,
            full_attn_alpha_factor=1.2,
            full_attn_beta_factor=0.8,
            mlp_alpha_factor=1.1,
            mlp_beta_factor=0.7,
            rope_parameters=dict(rope_type="default", rope_theta=1000.0),
        ),
    ),
    "olmo_hybrid": (
        "OlmoHybridConfig",
        dict(SIZES, **OLMO_DELTA, rope_parameters=dict(rope_type="default", rope_theta=1000.0)),
    ),
    # No rotation, states keep their sign, and every width follows from others.
    "olmo_hybrid_in_place": (
        "OlmoHybridConfig",
        dict(
            SIZES,
            layer_types=["linear_attention", "full_attention"],
            linear_allow_neg_eigval=False,
            rope_parameters=dict(rope_theta=None, rope_type="default"),
        ),
    ),
    "mamba": ("MambaConfig", dict(MAMBA, use_bias=True)),
    "falcon_mamba": ("FalconMambaConfig", dict(MAMBA, expand=3, mixer_rms_eps=1e-2, tie_word_embeddings=False)),
    "jamba": (
        "JambaConfig",
        dict(
            SIZES,
            intermediate_size=24,
            attn_layer_period=2,
            attn_layer_offset=1,
            num_hidden_layers=3,
            expert_layer_period=2,
            expert_layer_offset=1,
            num_experts=4,
            mamba_expand=1,
            mamba_d_state=6,
            mamba_dt_rank=5,
            mamba_proj_bias=True,
        ),
    ),
    "falcon_h1_gated": (
        "FalconH1Config",
        dict(FALCON_H1, mamba_n_groups=1, mamba_rms_norm=True, mamba_norm_before_gate=False, projectors_bias=True),
    ),
}
