"""Small models whose layers differ in more than a window: other heads, or another kind of attention."""

from sizes import GLM_MOE, LATENT

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
