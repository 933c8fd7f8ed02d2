"""Small models of families that vary attention and the MLP: norms, scales, windows, latent heads, shared experts."""

from sizes import (
    COHERE,
    EXPERTS,
    FEW_EXPERTS,
    GLM_MOE,
    HALF_ROTATED,
    LATENT,
    LAYER_NORM,
    LLAMA3,
    SIZES,
    WIDE_HEADS,
    YARN,
)

OF_EXPERTS = ("first_k_dense_replace", "routed_scaling_factor")
DENSE_LATENT = {key: value for key, value in LATENT.items() if "expert" not in key and key not in OF_EXPERTS}
LOCAL = dict(sliding_window=8, layer_types=["sliding_attention", "full_attention"])
FACTORS = dict(embedding_multiplier=1.4, residual_multiplier=0.6, attention_multiplier=0.2, logits_scaling=1.6)
XGLM = dict(vocab_size=96, pad_token_id=None, bos_token_id=None, eos_token_id=None)
COHERE_MOE = dict(
    {key: value for key, value in COHERE.items() if key != "attention_bias"},
    head_dim=10,
    intermediate_size=12,
    num_experts=6,
    num_experts_per_tok=2,
    sliding_window=7,
    logit_scale=0.4,
)
SLOW = dict(rope_type="default", rope_theta=1000.0)

# name -> the class of its config, and what that says
ATTENTION_VARIANTS = {
    "hy_v3": (
        "HYV3Config",
        dict(
            WIDE_HEADS,
            **EXPERTS,
            attention_bias=True,
            num_shared_experts=2,
            router_scaling_factor=1.7,
            rope_parameters=SLOW,
        ),
    ),
    "solar_open": (
        "SolarOpenConfig",
        {key: value for key, value in GLM_MOE.items() if key not in ("intermediate_size", "first_k_dense_replace")}
        | dict(
            n_shared_experts=2,
            n_routed_experts=6,
            num_experts_per_tok=2,
            n_group=2,
            topk_group=1,
            rope_parameters=dict(YARN, factor=3.0, partial_rotary_factor=1.0),
        ),
    ),
    "afmoe": (
        "AfmoeConfig",
        dict(
            WIDE_HEADS,
            **FEW_EXPERTS,
            **LOCAL | dict(sliding_window=7),
            attention_bias=True,
            num_dense_layers=1,
            num_shared_experts=2,
            route_scale=1.7,
            mup_enabled=True,
        ),
    ),
    "cwm": (
        "CwmConfig",
        dict(
            WIDE_HEADS,
            bos_token_id=0,
            sliding_window=8,
            layer_types=["full_attention", "sliding_attention"],
            rope_parameters=LLAMA3,
        ),
    ),
    "flex_olmo": (
        "FlexOlmoConfig",
        dict(SIZES, intermediate_size=12, num_experts=8, num_experts_per_tok=3, norm_topk_prob=True),
    ),
    "minicpm3": (
        "MiniCPM3Config",
        dict(
            DENSE_LATENT,
            q_lora_rank=24,
            attention_bias=True,
            scale_emb=1.6,
            scale_depth=1.1,
            dim_model_base=60,
            rope_parameters=dict(
                rope_type="longrope",
                rope_theta=10000.0,
                short_factor=[1.0, 1.1, 1.3, 1.5],
                long_factor=[1.0, 1.5, 2.0, 4.0],
                original_max_position_embeddings=16,
            ),
        ),
    ),
    "youtu": ("YoutuConfig", dict(DENSE_LATENT, q_lora_rank=24, attention_bias=True, rope_parameters=YARN)),
    "jais2": ("Jais2Config", dict(LAYER_NORM, num_key_value_heads=2)),
    "helium": ("HeliumConfig", dict(SIZES, head_dim=12, attention_bias=True, mlp_bias=True)),
    "vaultgemma": (
        "VaultGemmaConfig",
        dict(
            WIDE_HEADS,
            query_pre_attn_scalar=24,
            sliding_window=8,
            attn_logit_softcapping=2.0,
            final_logit_softcapping=3.0,
        ),
    ),
    "hyperclovax": ("HyperCLOVAXConfig", dict(WIDE_HEADS, **FACTORS, attention_bias=True, mlp_bias=True)),
    "hyperclovax_plain": ("HyperCLOVAXConfig", dict(SIZES, **FACTORS, use_post_norm=False)),
    "internlm3": ("InternLM3Config", dict(WIDE_HEADS, attention_bias=True, mlp_bias=True, rope_parameters=SLOW)),
    # The dense layer rotates without a window, the last one does not rotate.
    "cohere2_moe": (
        "Cohere2MoeConfig",
        dict(
            COHERE_MOE,
            num_hidden_layers=3,
            first_k_dense_replace=1,
            prefix_dense_intermediate_size=28,
            layer_types=["full_attention", "sliding_attention", "full_attention"],
            num_shared_experts=2,
            expert_selection_fn="sigmoid",
        ),
    ),
    "cohere2_moe_softmax": (
        "Cohere2MoeConfig",
        dict(
            COHERE_MOE,
            layer_types=["sliding_attention", "full_attention"],
            num_shared_experts=1,
            shared_expert_combination_strategy="sum",
            rms_norm_eps=1e-3,
            tie_word_embeddings=False,
        ),
    ),
    "nanochat": ("NanoChatConfig", dict(SIZES, final_logit_softcapping=2.0, rope_parameters=SLOW)),
    # A layer that does not rotate, and two by angles of their own.
    "granite_swa": (
        "GraniteSWAConfig",
        dict(
            SIZES,
            **FACTORS,
            num_hidden_layers=3,
            intermediate_size=40,
            attention_bias=True,
            sliding_window=7,
            layer_types=["full_attention", "sliding_attention", "sliding_attention"],
            layer_rope_theta=[0, 100.0, 10000.0],
        ),
    ),
    "iquestcoder": ("IQuestCoderConfig", dict(WIDE_HEADS, rope_parameters=SLOW)),
    "gpt_neo": (
        "GPTNeoConfig",
        dict(
            vocab_size=96,
            hidden_size=40,
            intermediate_size=52,
            num_layers=2,
            num_heads=4,
            attention_types=[[["local", "global"], 1]],
            window_size=8,
            max_position_embeddings=30,
            layer_norm_epsilon=1e-3,
            bos_token_id=None,
            eos_token_id=None,
        ),
    ),
    "persimmon": ("PersimmonConfig", dict(LAYER_NORM, rope_parameters=HALF_ROTATED)),
    "persimmon_plain": ("PersimmonConfig", dict(LAYER_NORM, qk_layernorm=False, hidden_act="gelu")),
    "xglm": ("XGLMConfig", dict(XGLM, d_model=40, ffn_dim=52, num_layers=2, attention_heads=4)),
    "biogpt": (
        "BioGptConfig",
        dict(
            XGLM,
            hidden_size=40,
            intermediate_size=52,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=30,
            hidden_act="relu",
        ),
    ),
    "bitnet": ("BitNetConfig", dict(SIZES, attention_bias=True, rope_parameters=SLOW)),
}
