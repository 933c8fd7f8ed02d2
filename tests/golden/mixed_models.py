"""Small models whose layers differ in more than a window: other heads, or another kind of attention."""

from sizes import FEW_EXPERTS, GLM_MOE, GRANITE_MOE, INDEX, LATENT, SIZES, TEMPERED, WIDE_HEADS, YARN

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
    "mellum": (
        "MellumConfig",
        dict(
            WIDE_HEADS,
            **FEW_EXPERTS,
            attention_bias=True,
            sliding_window=7,
            layer_types=["full_attention", "sliding_attention"],
            mlp_layer_types=["dense", "sparse"],
            rope_parameters=dict(
                full_attention=dict(YARN, mscale_all_dim=0),
                sliding_attention=dict(rope_type="default", rope_theta=100.0),
            ),
        ),
    ),
    "axk1": (
        "AXK1Config",
        dict(LATENT, q_lora_rank=24, n_group=4, topk_group=2, attention_bias=True, rope_parameters=YARN),
    ),
    "mistral4": (
        "Mistral4Config",
        dict(LATENT, q_lora_rank=24, attention_bias=True, rope_parameters=TEMPERED),
    ),
    "axk2": (
        "AXK2Config",
        dict(
            {key: value for key, value in LATENT.items() if key not in ("n_routed_experts", "num_experts_per_tok")},
            **INDEX,
            n_routed_experts=4,
            num_experts_per_tok=2,
            hidden_size=32,
            q_lora_rank=16,
            index_topk=6,
            gated_norm_rank=5,
            attention_bias=True,
            rope_parameters=YARN,
        ),
    ),
    "kolibri1": (
        "Kolibri1Config",
        dict(
            {key: value for key, value in WIDE_HEADS.items() if key != "intermediate_size"},
            **FEW_EXPERTS,
            shared_expert_intermediate_size=20,
            sliding_window=7,
            layer_types=["sliding_attention", "full_attention"],
            rope_parameters=dict(rope_type="default", rope_theta=1000.0),
        ),
    ),
    # Latents, heads and angles of layers with a window are others than those of layers with an index.
    "dots3_note": (
        "Dots3NoteTextConfig",
        dict(
            LATENT
            | INDEX
            | dict(
                hidden_size=32,
                intermediate_size=40,
                n_routed_experts=6,
                num_experts_per_tok=2,
                n_group=3,
                topk_group=2,
                q_lora_rank=14,
                shared_experts_intermediate_size=10,
                moe_intermediate_size=8,
                index_topk=6,
                head_dim=24,
                layer_types=["full_attention", "sliding_attention"],
                sliding_window=7,
                rope_theta=1000.0,
                swa_rope_theta=100.0,
                swa_num_attention_heads=6,
                swa_num_key_value_heads=6,
                swa_q_lora_rank=18,
                swa_kv_lora_rank=12,
                swa_head_dim=16,
                swa_qk_nope_head_dim=10,
                swa_v_head_dim=8,
                attention_bias=True,
            ),
        ),
    ),
    # The first layer does not rotate, each of the others has angles of its own, and there is a shared expert.
    "granitemoe_swa": (
        "GraniteMoeSWAConfig",
        dict(
            GRANITE_MOE,
            num_hidden_layers=3,
            hidden_size=40,
            num_local_experts=4,
            sliding_window=7,
            layer_types=["full_attention", "sliding_attention", "sliding_attention"],
            layer_rope_theta=[0, 100.0, 1000.0],
            shared_intermediate_size=12,
        ),
    ),
}
