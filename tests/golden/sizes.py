"""Sizes and options that the small models share. No option has the value that hides it; see make_fixtures.py."""

SIZES = dict(
    vocab_size=96,
    hidden_size=48,
    intermediate_size=80,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    rms_norm_eps=1e-3,
    pad_token_id=None,
    bos_token_id=None,
    eos_token_id=None,
)
WIDE_HEADS = dict(SIZES, head_dim=16)  # 4 heads of 16 are wider than 48
GPT2 = dict(
    vocab_size=96,
    n_embd=48,
    n_inner=80,
    n_layer=2,
    n_head=4,
    n_positions=64,
    layer_norm_epsilon=1e-3,
    bos_token_id=None,
    eos_token_id=None,
)
LAYER_NORM = {
    **{key: value for key, value in SIZES.items() if key not in ("rms_norm_eps", "num_key_value_heads")},
    "layer_norm_eps": 1e-3,
}
LLAMA3 = dict(
    rope_type="llama3",
    rope_theta=10000.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=64,
)
LLAMA4 = dict(
    WIDE_HEADS,
    intermediate_size=8,
    intermediate_size_mlp=40,
    num_local_experts=8,
    num_experts_per_tok=2,
    interleave_moe_layer_step=2,
    no_rope_layers=[1, 0],
    attention_chunk_size=10,
    floor_scale=4,
    attn_scale=0.5,
)
LLAMA4_TOWER = dict(
    hidden_size=16,
    intermediate_size=64,  # of its layers, and of four patches
    num_hidden_layers=2,
    num_attention_heads=2,
    image_size=8,
    patch_size=2,
    vision_output_dim=20,
    projector_input_dim=20,
    projector_output_dim=20,
)
LONGROPE = dict(
    rope_type="longrope",
    rope_theta=10000.0,
    partial_rotary_factor=1.0,
    short_factor=[1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
    long_factor=[1.0, 1.5, 2.0, 3.0, 4.0, 6.0],
)
YARN = dict(
    rope_type="yarn",
    rope_theta=10000.0,
    factor=4.0,
    original_max_position_embeddings=16,
    beta_fast=4.0,
    beta_slow=1.0,
    mscale=1.0,
    mscale_all_dim=0.7,
)
LATENT = dict(
    SIZES,
    num_key_value_heads=4,
    kv_lora_rank=20,
    qk_nope_head_dim=16,
    qk_rope_head_dim=8,
    v_head_dim=12,
    n_shared_experts=2,
    n_routed_experts=8,
    num_experts_per_tok=3,
    moe_intermediate_size=12,
    first_k_dense_replace=1,
    routed_scaling_factor=1.7,
)
INDEX = dict(index_n_heads=10, index_head_dim=12)
EXPERTS = dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=12)
SLIDING = dict(use_sliding_window=True, sliding_window=8)

HALF_ROTATED = dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)
GLM_MOE = dict(
    WIDE_HEADS,
    attention_bias=True,
    rope_parameters=HALF_ROTATED,
    n_routed_experts=8,
    num_experts_per_tok=3,
    moe_intermediate_size=12,
    first_k_dense_replace=1,
    routed_scaling_factor=1.7,
)

GRANITE_MOE = dict(
    SIZES,
    attention_bias=True,
    intermediate_size=12,
    num_local_experts=8,
    num_experts_per_tok=2,
    embedding_multiplier=1.4,
    residual_multiplier=0.6,
    attention_multiplier=0.2,
    logits_scaling=1.6,
)
# Limits of a step that some steps are beyond.
MAMBA2 = dict(
    {key: value for key, value in SIZES.items() if key in ("vocab_size", "hidden_size", "num_hidden_layers")},
    num_heads=8,
    head_dim=12,
    state_size=10,
    layer_norm_epsilon=1e-3,
    time_step_limit=[0.4, 1.1],
    pad_token_id=None,
    bos_token_id=None,
    eos_token_id=None,
)
GRANITE_HYBRID = dict(
    GRANITE_MOE,
    layer_types=["linear_attention", "full_attention"],
    num_local_experts=6,
    shared_intermediate_size=20,
    mamba_n_heads=8,
    mamba_d_state=10,
    time_step_limit=[0.4, 1.1],
)
FALCON_H1 = dict(
    SIZES,
    intermediate_size=48,
    mamba_d_ssm=64,
    mamba_n_heads=8,
    mamba_d_head=8,
    mamba_d_state=6,
    time_step_limit=[0.4, 1.1],
    lm_head_multiplier=0.7,
    embedding_multiplier=1.4,
    mlp_multipliers=[0.8, 1.2],
    key_multiplier=0.6,
    attention_out_multiplier=0.9,
    attention_in_multiplier=1.3,
    ssm_multipliers=[0.9, 1.2, 0.7, 1.1, 0.8],
    ssm_in_multiplier=1.1,
    ssm_out_multiplier=0.75,
)
NEMOTRON = dict(
    vocab_size=96,
    hidden_size=48,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    intermediate_size=80,
    mamba_num_heads=8,
    mamba_head_dim=10,
    ssm_state_size=6,
    n_groups=4,
    layer_norm_epsilon=1e-3,
    time_step_min=0.5,
    pad_token_id=None,
    bos_token_id=None,
    eos_token_id=None,
)
ALPHA = dict(rope_type="dynamic", rope_theta=10000.0, alpha=50.0, factor=1.0)
VISION = dict(
    depth=1,
    hidden_size=16,
    intermediate_size=16,
    num_heads=4,
    patch_size=2,
    spatial_merge_size=1,
    temporal_patch_size=1,
    out_hidden_size=48,
    num_position_embeddings=16,
    deepstack_visual_indexes=[0],
)
FEW_EXPERTS = dict(EXPERTS, num_experts=6, num_experts_per_tok=2)
# Gated delta rules: two heads of values for each head of keys, and all of other widths.
DELTA = dict(
    layer_types=["linear_attention", "full_attention"],
    linear_num_key_heads=2,
    linear_num_value_heads=4,
    linear_key_head_dim=6,
    linear_value_head_dim=10,
    linear_conv_kernel_dim=4,
    rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
)
SQUARES = dict(depth=2, patch_size=2, spatial_merge_size=2, temporal_patch_size=2)
SMALL_TOWER = dict(VISION | SQUARES, num_heads=2, intermediate_size=20)
SHALLOW_TOWER = {key: value for key, value in SMALL_TOWER.items() if key != "deepstack_visual_indexes"}
# Three heads, and a merger whose width is neither that of the layers nor that of what it makes.
GLM4V_TOWER = dict(
    SHALLOW_TOWER,
    hidden_size=24,
    num_heads=3,
    intermediate_size=20,
    image_size=8,
    rms_norm_eps=1e-3,
)
# Three heads, and layers whose results are scaled by something else than one.
INTERNVL_TOWER = dict(
    hidden_size=24,
    intermediate_size=20,
    num_hidden_layers=2,
    num_attention_heads=3,
    image_size=8,
    patch_size=2,
    layer_norm_eps=1e-3,
)
SIGLIP = dict(hidden_size=24, intermediate_size=20, num_hidden_layers=2, image_size=8, patch_size=2)
GEMMA3 = dict(
    WIDE_HEADS,
    query_pre_attn_scalar=24,
    sliding_window=8,
    attn_logit_softcapping=None,
    final_logit_softcapping=None,
    layer_types=["sliding_attention", "full_attention"],
    rope_parameters=dict(
        full_attention=dict(rope_type="linear", rope_theta=100000.0, factor=4.0),
        sliding_attention=dict(rope_type="default", rope_theta=1000.0),
    ),
)
GEMMA4 = dict(
    WIDE_HEADS,
    global_head_dim=24,
    sliding_window=8,
    layer_types=["sliding_attention", "full_attention"],
    hidden_size_per_layer_input=0,
    final_logit_softcapping=2.0,
    rope_parameters=dict(
        full_attention=dict(rope_type="proportional", rope_theta=1000.0, partial_rotary_factor=0.25),
        sliding_attention=dict(rope_type="default", rope_theta=10000.0),
    ),
)
# Two kinds of layers with keys and values of their own, of which the second last has a later one of its kind.
LAYER_WORDS = dict(
    vocab_size=64,
    hidden_size=24,
    intermediate_size=32,
    num_hidden_layers=5,
    head_dim=8,
    global_head_dim=12,
    layer_types=["sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    num_kv_shared_layers=2,
    vocab_size_per_layer_input=64,
    hidden_size_per_layer_input=10,
)
# Words beyond the table for layers, shares that cut much off in some layers, and four streams.
GEMMA3N = dict(
    WIDE_HEADS
    | {key: value for key, value in LAYER_WORDS.items() if key != "global_head_dim"}
    | dict(
        vocab_size_per_layer_input=48,
        sliding_window=8,
        final_logit_softcapping=2.0,
        laurel_rank=6,
        activation_sparsity_pattern=[0.6, 0.0, 0.9, 0.7, 0.0],
        rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=1000.0),
            sliding_attention=dict(rope_type="default", rope_theta=10000.0),
        ),
    )
)
GEMMA4_VISION = dict(
    hidden_size=16,
    intermediate_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=2,
    head_dim=8,
    patch_size=2,
    position_embedding_size=4,
)
COHERE = dict(
    {key: value for key, value in SIZES.items() if key != "rms_norm_eps"}, layer_norm_eps=1e-3, attention_bias=True
)

FALCON = dict(vocab_size=96, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, layer_norm_epsilon=1e-3)
SECTIONS = dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 2, 2])
VISION_2 = dict(SQUARES, embed_dim=24, num_heads=3, mlp_ratio=1)
OPT = dict(
    vocab_size=96,
    hidden_size=48,
    ffn_dim=80,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=30,
    pad_token_id=None,
    bos_token_id=None,
    eos_token_id=None,
)

# name -> (config class, what it says)
ZAMBA2 = dict(
    {key: value for key, value in SIZES.items() if key != "num_key_value_heads"},
    vocab_size=64,
    hidden_size=24,
    intermediate_size=32,
    num_hidden_layers=5,
    layers_block_type=["mamba", "hybrid", "hybrid", "mamba", "hybrid"],
    num_mem_blocks=2,
    n_mamba_heads=4,
    mamba_ngroups=2,
    mamba_d_state=6,
    mamba_expand=2,
    time_step_min=0.4,
    chunk_size=16,
    adapter_rank=5,
)
TEMPERED = dict(YARN, llama_4_scaling_beta=0.3, original_max_position_embeddings=8)
PIXTRAL = dict(
    model_type="pixtral",
    hidden_size=24,
    intermediate_size=20,
    num_hidden_layers=2,
    num_attention_heads=3,
    head_dim=8,
    image_size=8,
    patch_size=2,
    hidden_act="silu",
)
# The rounded size of an MLP: 85, in eights.
LFM2 = dict(
    {key: value for key, value in SIZES.items() if key != "rms_norm_eps"},
    norm_eps=1e-3,
    intermediate_size=100,
    conv_bias=True,
    layer_types=["conv", "full_attention"],
    rope_parameters=dict(rope_type="default", rope_theta=1000.0),
)
MAMBA = dict(
    {key: value for key, value in MAMBA2.items() if key not in ("num_heads", "head_dim", "time_step_limit")},
    state_size=6,
    time_step_rank=5,
    conv_kernel=3,
)
CLIP_TOWER = dict(
    model_type="clip_vision_model",
    hidden_size=24,
    intermediate_size=20,
    num_hidden_layers=3,
    num_attention_heads=3,
    image_size=8,
    patch_size=2,
    layer_norm_eps=1e-3,
)
CLIP = dict(
    hidden_size=8,
    intermediate_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    image_size=8,
    patch_size=4,
)
