"""Writes the golden fixtures: what the transformers library computes for a small random model of each family.

usage: make_fixtures.py [NAME...]          needs torch, transformers, numpy and safetensors; the tests need none of them

Per name of FAMILIES
  NAME-transformers-VERSION/   config.json and model.safetensors as save_pretrained writes them: names of this version
  NAME-transformers-VERSION.expected.safetensors   of the model loaded back from there, in f32 on the CPU, eager:
      input_ids [2, 24] i64
      hidden.0 .. hidden.N [2, 24, embed] f32    the input of each layer; the last one's output, before the final norm
      logits [2, 24, vocab] f32
      router.L.chosen [2, 24, top_k] i64         ascending, where layer L has a router
and functions.json: the same library's activations, routers and rotation frequencies at many points (functions.py).

Weights come from a generator that is seeded with the tensor's name, and no option that changes a result has the value
that hides it: epsilons are large, windows shorter than the input, caps and clamps bite, biases and norms are random.
"""

import json
import pathlib
import shutil
import sys
import warnings
import zlib

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

import functions

HERE = pathlib.Path(__file__).parent
LIMIT_BYTES = 300_000
MASKED = ("bert", "roberta")
# Whose stacks of experts are published [.., in, out], and held and saved [.., out, in].
TRANSPOSED = ("qwen3_vl_moe",)
# Whose published names the library reads and does not write.
HELD = ("kimi_k25",)
# The eager attention of this version adds linear biases that the mask has already.
ADDS_TWICE = ("falcon",)
# Whose norms multiply by 1 + weight.
ONE_PLUS = ("gemma", "qwen3_next", "qwen3_5")
TOKENS = (2, 24)
# How far apart the last chosen and the first unchosen expert are: less, and rounding could choose.
LEAST_GAP = 1e-4

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
SHALLOW_VISION = {key: value for key, value in VISION.items() if key != "deepstack_visual_indexes"}
SIGLIP = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, image_size=8, patch_size=2)
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
COHERE = dict(
    {key: value for key, value in SIZES.items() if key != "rms_norm_eps"}, layer_norm_eps=1e-3, attention_bias=True
)

FALCON = dict(vocab_size=96, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, layer_norm_epsilon=1e-3)
SECTIONS = dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 2, 2])
VISION_2 = dict(depth=1, embed_dim=16, num_heads=4, mlp_ratio=1, patch_size=2, spatial_merge_size=1, temporal_patch_size=1)
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
FAMILIES = {
    "llama": ("LlamaConfig", dict(WIDE_HEADS, attention_bias=True, mlp_bias=True)),
    "llama_llama3": (
        "LlamaConfig",
        dict(WIDE_HEADS, rope_parameters=LLAMA3, tie_word_embeddings=True, max_position_embeddings=512),
    ),
    "mistral": ("MistralConfig", dict(WIDE_HEADS, sliding_window=8)),
    "qwen2": ("Qwen2Config", dict(SIZES, **SLIDING, max_window_layers=1)),
    "qwen3": ("Qwen3Config", dict(WIDE_HEADS, **SLIDING, max_window_layers=1, attention_bias=True)),
    "phi3": (
        "Phi3Config",
        dict(SIZES, sliding_window=8, rope_parameters=dict(rope_type="default", partial_rotary_factor=0.5)),
    ),
    "phi3_longrope": ("Phi3Config", dict(SIZES, rope_parameters=LONGROPE, original_max_position_embeddings=16)),
    "gemma": ("GemmaConfig", dict(WIDE_HEADS)),
    "gemma2": (
        "Gemma2Config",
        dict(
            WIDE_HEADS,
            query_pre_attn_scalar=24,
            sliding_window=8,
            attn_logit_softcapping=2.0,
            final_logit_softcapping=3.0,
        ),
    ),
    "gpt2": ("GPT2Config", GPT2),
    "gpt_neox": (
        "GPTNeoXConfig",
        dict(LAYER_NORM, rope_parameters=dict(rope_type="default", partial_rotary_factor=0.5)),
    ),
    "bert": ("BertConfig", LAYER_NORM),
    "mixtral": (
        "MixtralConfig",
        dict(WIDE_HEADS, sliding_window=8, intermediate_size=12, num_local_experts=8, num_experts_per_tok=3),
    ),
    "qwen2_moe": (
        "Qwen2MoeConfig",
        dict(
            SIZES,
            **EXPERTS,
            **SLIDING,
            max_window_layers=2,
            shared_expert_intermediate_size=40,
            mlp_only_layers=[0],
            norm_topk_prob=False,
        ),
    ),
    "qwen3_moe": ("Qwen3MoeConfig", dict(WIDE_HEADS, **EXPERTS, **SLIDING, norm_topk_prob=True)),
    "deepseek_v2": (
        "DeepseekV2Config",
        dict(
            LATENT,
            q_lora_rank=24,
            topk_method="group_limited_greedy",
            n_group=4,
            topk_group=2,
            rope_parameters=YARN,
            attention_bias=True,
        ),
    ),
    "deepseek_v2_lite": ("DeepseekV2Config", dict(LATENT, q_lora_rank=None, topk_method="greedy")),
    "deepseek_v3": (
        "DeepseekV3Config",
        dict(
            LATENT,
            q_lora_rank=24,
            n_group=4,
            topk_group=2,
            norm_topk_prob=True,
            rope_parameters=YARN,
            attention_bias=True,
            num_mtp_layers=0,
        ),
    ),
    "glm": ("GlmConfig", dict(WIDE_HEADS, attention_bias=True, rope_parameters=HALF_ROTATED)),
    "glm4": ("Glm4Config", dict(WIDE_HEADS, attention_bias=True, rope_parameters=HALF_ROTATED)),
    "glm4_moe_normed": ("Glm4MoeConfig", dict(GLM_MOE, use_qk_norm=True, n_shared_experts=2, n_group=4, topk_group=2)),
    "glm4_moe_air": ("Glm4MoeConfig", dict(GLM_MOE, use_qk_norm=False, n_shared_experts=1, norm_topk_prob=False)),
    "seed_oss": ("SeedOssConfig", dict(WIDE_HEADS, attention_bias=True, attention_out_bias=True)),
    "ernie4_5": ("Ernie4_5Config", dict(WIDE_HEADS, use_bias=True)),
    "exaone4": (
        "Exaone4Config",
        dict(WIDE_HEADS, sliding_window=None, sliding_window_pattern=None, layer_types=["full_attention"] * 2),
    ),
    "olmoe": (
        "OlmoeConfig",
        dict(SIZES, intermediate_size=12, num_experts=8, num_experts_per_tok=3, norm_topk_prob=True),
    ),
    "granite": (
        "GraniteConfig",
        dict(
            WIDE_HEADS,
            attention_bias=True,
            mlp_bias=True,
            embedding_multiplier=1.4,
            residual_multiplier=0.6,
            attention_multiplier=0.2,
            logits_scaling=1.6,
        ),
    ),
    "granitemoe": ("GraniteMoeConfig", GRANITE_MOE),
    "granitemoe_shared": ("GraniteMoeSharedConfig", dict(GRANITE_MOE, shared_intermediate_size=20)),
    "smollm3": ("SmolLM3Config", dict(WIDE_HEADS, no_rope_layers=[0, 1], use_sliding_window=True, sliding_window=8)),
    "exaone4_local": (
        "Exaone4Config",
        dict(WIDE_HEADS, sliding_window=8, layer_types=["full_attention", "sliding_attention"]),
    ),
    "hunyuan_v1_dense": ("HunYuanDenseV1Config", dict(WIDE_HEADS, rope_parameters=ALPHA)),
    "hunyuan_v1_moe": (
        "HunYuanMoEV1Config",
        dict(WIDE_HEADS, intermediate_size=12, num_experts=8, moe_topk=3, rope_parameters=ALPHA),
    ),
    "ernie4_5_moe": (
        "Ernie4_5_MoeConfig",
        dict(
            SIZES,
            moe_num_experts=8,
            moe_k=3,
            moe_intermediate_size=12,
            moe_num_shared_experts=2,
            moe_layer_start_index=1,
            moe_norm_min=0.9,
        ),
    ),
    "qwen3_vl": ("Qwen3VLConfig", dict(text_config=dict(WIDE_HEADS, attention_bias=True), vision_config=VISION)),
    "qwen3_vl_moe": ("Qwen3VLMoeConfig", dict(text_config=dict(WIDE_HEADS, **EXPERTS), vision_config=VISION)),
    "gemma3_text": ("Gemma3TextConfig", GEMMA3),
    "gemma3": (
        "Gemma3Config",
        dict(text_config=GEMMA3, vision_config=dict(SIGLIP, num_attention_heads=4), mm_tokens_per_image=4),
    ),
    "glm4_moe_lite": (
        "Glm4MoeLiteConfig",
        dict(
            {key: value for key, value in LATENT.items() if key != "first_k_dense_replace"},
            q_lora_rank=24,
            n_group=4,
            topk_group=2,
            attention_bias=True,
        ),
    ),
    "cohere": ("CohereConfig", dict(COHERE, use_qk_norm=True, logit_scale=0.3)),
    "cohere2": (
        "Cohere2Config",
        dict(COHERE, sliding_window=8, logit_scale=0.3, layer_types=["sliding_attention", "full_attention"]),
    ),
    "olmo": ("OlmoConfig", dict({k: v for k, v in SIZES.items() if k != "rms_norm_eps"}, clip_qkv=0.9)),
    "olmo2": ("Olmo2Config", dict(SIZES, attention_bias=True)),
    "olmo3": (
        "Olmo3Config",
        dict(
            SIZES,
            sliding_window=8,
            layer_types=["sliding_attention", "full_attention"],
            rope_parameters=dict(
                full_attention=dict(YARN, attention_factor=1.1),
                sliding_attention=dict(rope_type="default", rope_theta=10000.0),
            ),
        ),
    ),
    "starcoder2": (
        "Starcoder2Config",
        dict({k: v for k, v in SIZES.items() if k != "rms_norm_eps"}, norm_epsilon=1e-3, use_bias=True, sliding_window=8),
    ),
    "phi": ("PhiConfig", dict(LAYER_NORM, num_key_value_heads=2, rope_parameters=HALF_ROTATED)),
    "phi_normed": ("PhiConfig", dict(LAYER_NORM, num_key_value_heads=4, qk_layernorm=True, rope_parameters=HALF_ROTATED)),
    "gpt_neox_behind": (
        "GPTNeoXConfig",
        dict(LAYER_NORM, use_parallel_residual=False, rope_parameters=HALF_ROTATED),
    ),
    "falcon": ("FalconConfig", dict(FALCON, new_decoder_architecture=True, num_kv_heads=2)),
    "falcon_one_norm": (
        "FalconConfig",
        dict(FALCON, new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1),
    ),
    "falcon_multi_query": ("FalconConfig", dict(FALCON, multi_query=True, bias=True)),
    "falcon_multi_head": (
        "FalconConfig",
        dict(FALCON, multi_query=False, parallel_attn=False, alibi=True, bias=True),
    ),
    "bloom": ("BloomConfig", dict(vocab_size=96, hidden_size=48, n_layer=2, n_head=6, layer_norm_epsilon=1e-3)),
    "mpt": (
        "MptConfig",
        dict(
            vocab_size=96,
            d_model=48,
            n_layers=2,
            n_heads=6,
            expansion_ratio=2,
            layer_norm_epsilon=1e-3,
            attn_config=dict(clip_qkv=0.9),
        ),
    ),
    "gpt_bigcode": ("GPTBigCodeConfig", dict(GPT2, multi_query=True)),
    "gpt_bigcode_multi_head": ("GPTBigCodeConfig", dict(GPT2, multi_query=False)),
    "roberta": ("RobertaConfig", dict(LAYER_NORM, pad_token_id=1, max_position_embeddings=40, type_vocab_size=1)),
    "llama4_text": (
        "Llama4TextConfig",
        dict(
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
        ),
    ),
    "qwen3_next": (
        "Qwen3NextConfig",
        dict(WIDE_HEADS, **FEW_EXPERTS, **DELTA, shared_expert_intermediate_size=20, attention_bias=True),
    ),
    "qwen3_5": ("Qwen3_5Config", dict(text_config=dict(WIDE_HEADS, **DELTA), vision_config=SHALLOW_VISION)),
    "qwen3_5_text": ("Qwen3_5TextConfig", dict(WIDE_HEADS, **DELTA, attention_bias=True)),
    "qwen3_5_moe": (
        "Qwen3_5MoeConfig",
        dict(
            text_config=dict(WIDE_HEADS, **FEW_EXPERTS, **DELTA, shared_expert_intermediate_size=16),
            vision_config=SHALLOW_VISION,
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
    "qwen2_vl": (
        "Qwen2VLConfig",
        dict(text_config=dict(SIZES, rope_parameters=SECTIONS), vision_config=dict(VISION_2, hidden_size=48)),
    ),
    "qwen2_5_vl": (
        "Qwen2_5_VLConfig",
        dict(text_config=dict(SIZES, rope_parameters=SECTIONS), vision_config=dict(VISION, out_hidden_size=48)),
    ),
    "minimax_m2": (
        "MiniMaxM2Config",
        dict(
            SIZES,
            head_dim=16,
            rotary_dim=4,
            intermediate_size=12,
            num_local_experts=8,
            num_experts_per_tok=3,
        ),
    ),
    "phimoe": (
        "PhimoeConfig",
        dict(
            SIZES,
            attention_bias=True,
            lm_head_bias=True,
            intermediate_size=12,
            num_local_experts=8,
            num_experts_per_tok=2,
            router_jitter_noise=0.3,
            sliding_window=8,
            original_max_position_embeddings=32,
            rope_parameters=dict(
                LONGROPE, short_mscale=1.2, long_mscale=1.3, original_max_position_embeddings=32
            ),
        ),
    ),
    "stablelm": ("StableLmConfig", dict(LAYER_NORM, num_key_value_heads=2, rope_parameters=HALF_ROTATED)),
    "stablelm_beside": (
        "StableLmConfig",
        dict(
            LAYER_NORM,
            num_key_value_heads=2,
            rope_parameters=dict(HALF_ROTATED, partial_rotary_factor=0.34),
            use_qkv_bias=True,
            qk_layernorm=True,
            use_parallel_residual=True,
            tie_word_embeddings=True,
        ),
    ),
    "opt": ("OPTConfig", OPT),
    "opt_behind": ("OPTConfig", dict(OPT, do_layer_norm_before=False, word_embed_proj_dim=20)),
    "opt_plain": (
        "OPTConfig",
        dict(
            OPT,
            enable_bias=False,
            layer_norm_elementwise_affine=False,
            activation_function="gelu",
            tie_word_embeddings=False,
        ),
    ),
    "dbrx": (
        "DbrxConfig",
        dict(
            vocab_size=96,
            d_model=48,
            n_heads=4,
            n_layers=2,
            max_seq_len=64,
            rope_parameters=dict(rope_type="default", rope_theta=500.0),
            attn_config=dict(kv_n_heads=2, clip_qkv=0.9, rope_theta=500.0),
            ffn_config=dict(ffn_hidden_size=12, moe_num_experts=8, moe_top_k=3),
        ),
    ),
    "kimi_k25": (
        "Kimi_K25Config",
        dict(
            text_config=dict(
                LATENT,
                intermediate_size=40,
                moe_intermediate_size=8,
                q_lora_rank=16,
                n_group=2,
                topk_group=1,
                rope_parameters=YARN,
                num_nextn_predict_layers=0,
            ),
            vision_config=dict(
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=4,
                intermediate_size=16,
                patch_size=2,
                pos_emb_height=2,
                pos_emb_width=2,
                pos_emb_time=2,
            ),
            projection_hidden_size=16,
            tie_word_embeddings=False,
        ),
    ),
    "deepseek_v32": (
        "DeepseekV32Config",
        dict(
            LATENT,
            moe_intermediate_size=8,
            q_lora_rank=16,
            n_group=2,
            topk_group=1,
            rope_parameters=YARN,
            attention_bias=True,
            index_topk=7,
            **INDEX,
        ),
    ),
    "glm_moe_dsa": (
        "GlmMoeDsaConfig",
        dict(LATENT, moe_intermediate_size=8, q_lora_rank=16, n_group=2, topk_group=1, index_topk=5, **INDEX),
    ),
    "gpt_oss": (
        "GptOssConfig",
        dict(
            WIDE_HEADS,
            intermediate_size=12,
            num_local_experts=8,
            num_experts_per_tok=3,
            sliding_window=8,
            rope_parameters=dict(
                rope_type="yarn",
                rope_theta=10000.0,
                factor=4.0,
                beta_fast=8.0,
                beta_slow=1.0,
                truncate=False,
                original_max_position_embeddings=16,
            ),
        ),
    ),
}


def drawn(fixture, name, shape):
    """The values of one tensor: of the size that keeps a layer's result near its input."""
    random = np.random.default_rng(zlib.crc32(f"{fixture}/{name}".encode()))
    values = random.standard_normal(shape)
    if "norm" in name.replace("norm_attn_norm.attn.", "").lower() or ".ln_" in name:
        is_added_to_1 = fixture.startswith(ONE_PLUS) and "linear_attn" not in name
        centre = 0.0 if name.endswith("bias") or is_added_to_1 else 1.0
        return centre + 0.3 * values
    if "sinks" in name:
        return 1.5 * values
    if "e_score_correction_bias" in name:
        return 0.2 * values
    if len(shape) == 1 or name.endswith("proj_bias"):
        return 0.3 * values
    if "embed" in name or "wte" in name or "wpe" in name:
        return 0.7 * values
    gain = 4.0 if fixture == "gpt_oss" and "gate_up" in name else 1.2  # 4: some of the clamps at 7 bite
    return gain * values / np.sqrt(min(shape[-2:]))


def class_of(fixture, config):
    if fixture in MASKED:
        return transformers.AutoModelForMaskedLM
    has_images = getattr(config, "vision_config", None) is not None
    return transformers.AutoModelForImageTextToText if has_images else transformers.AutoModelForCausalLM


def built(fixture):
    """A model with random weights."""
    config_class, says = FAMILIES[fixture]
    config = getattr(transformers, config_class)(**json.loads(json.dumps(says)))
    config.dtype = torch.float32
    model = class_of(fixture, config).from_config(config)
    tied = {name for name in getattr(model, "_tied_weights_keys", None) or {}} if config.tie_word_embeddings else set()
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if name not in tied:
                tensor.copy_(torch.from_numpy(drawn(fixture, name, tuple(tensor.shape))))
    return model


def loaded(model, folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    found, report = type(model).from_pretrained(
        folder,
        config=config,
        dtype=torch.float32,
        attn_implementation="sdpa" if config.model_type in ADDS_TWICE and config.alibi else "eager",
        experts_implementation="eager",
        output_loading_info=True,
    )
    if report["missing_keys"] or report["unexpected_keys"] or report["mismatched_keys"]:
        raise SystemExit(f"{folder.name}: {report}")
    return found.eval()


def layers_of(model):
    """The blocks: the first list of modules that is as long as the config says."""
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == model.config.get_text_config().num_hidden_layers:
            return module
    raise SystemExit(f"{type(model).__name__} has no list of layers")


def correction_of(router, args):
    """What only chooses: its own, or what it is handed behind its input."""
    own = getattr(getattr(router, "moe_statics", router), "e_score_correction_bias", None)
    return own if own is not None else args[1] if len(args) > 1 else None


def logits_and_chosen(out, config):
    """The scores, and the chosen experts: said, those whose weight is not 0, or of scores alone the first few."""
    if isinstance(out, torch.Tensor):
        return out, out.topk(config.ffn_config.moe_top_k, dim=-1).indices
    if len(out) == 3:
        return out[0], out[2]
    return out[1], out[0].nonzero()[:, 1].reshape(len(out[0]), -1)


def nearest(scores):
    """The least distance between two scores of a row."""
    ordered = scores.sort(dim=1).values
    return (ordered[:, 1:] - ordered[:, :-1]).min().item()


class Watch:
    """What passes between the layers and out of the routers of a model."""

    def __init__(self, model):
        self.hidden, self.chosen, self.gap, self.config = {}, {}, float("inf"), model.config
        layers = layers_of(model)
        for number, layer in enumerate(layers):
            layer.register_forward_pre_hook(self.entering(number), with_kwargs=True)
            for module in layer.modules():
                if type(module).__name__.endswith(("Router", "V1Gate")):
                    module.register_forward_hook(self.routing(number))
        layers[-1].register_forward_hook(self.leaving(len(layers)))

    def entering(self, number):
        def hook(_, args, kwargs):
            self.hidden[number] = (args[0] if args else kwargs["hidden_states"]).detach().clone()

        return hook

    def leaving(self, number):
        def hook(_, args, out):
            self.hidden[number] = (out[0] if isinstance(out, tuple) else out).detach().clone()

        return hook

    def routing(self, number):
        def hook(router, args, out):
            logits, chosen = logits_and_chosen(out, self.config)
            self.chosen[number] = chosen.sort(dim=-1).values.reshape(*TOKENS, -1)
            correction = correction_of(router, args)
            is_softmax = hasattr(router, "moe_statics")
            ranked = logits.softmax(dim=-1) if is_softmax else logits.sigmoid()
            scores = logits if correction is None else ranked + correction
            self.gap = min(self.gap, nearest(scores))
            if correction is not None and getattr(router, "num_group", 1) > 1:
                pairs = scores.reshape(len(scores), router.num_group, -1).topk(2, dim=2).values.sum(dim=2)
                self.gap = min(self.gap, nearest(pairs))

        return hook


def expected(fixture, model):
    random = np.random.default_rng(zlib.crc32(f"{fixture}/input_ids".encode()))
    input_ids = torch.from_numpy(random.integers(2 if fixture == "roberta" else 0, model.config.get_text_config().vocab_size, TOKENS))
    watch = Watch(model)
    with torch.no_grad():
        logits = model(input_ids=input_ids, use_cache=False).logits if fixture not in MASKED else model(input_ids).logits
    if watch.gap < LEAST_GAP:
        raise SystemExit(f"{fixture}: two experts are within {watch.gap:.1e} of each other, and rounding could choose")
    tensors = {"input_ids": input_ids, "logits": logits}
    tensors |= {f"hidden.{number}": value for number, value in watch.hidden.items()}
    tensors |= {f"router.{number}.chosen": value for number, value in watch.chosen.items()}
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor.double()).all():
            raise SystemExit(f"{fixture}: {name} is not finite")
    return {name: tensor.contiguous() for name, tensor in tensors.items()}, watch.gap


def transpose_experts(path):
    """Their kernels as [.., in, out]."""
    tensors = {
        name: tensor.transpose(-1, -2).contiguous() if ".experts." in name else tensor
        for name, tensor in load_file(path).items()
    }
    save_file(tensors, path, metadata={"format": "pt"})


def write(fixture):
    folder = HERE / f"{fixture}-transformers-{transformers.__version__}"
    shutil.rmtree(folder, ignore_errors=True)
    model = built(fixture)
    model.save_pretrained(folder, save_original_format=fixture not in HELD)
    (folder / "generation_config.json").unlink(missing_ok=True)
    tensors, gap = expected(fixture, loaded(model, folder))
    if fixture in TRANSPOSED:
        transpose_experts(folder / "model.safetensors")
    # One entry: safetensors writes several in any order.
    versions = {"versions": f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}"}
    beside = folder.with_name(f"{folder.name}.expected.safetensors")
    save_file(tensors, beside, metadata=versions)
    total = sum(file.stat().st_size for file in [*folder.iterdir(), beside])
    if total > LIMIT_BYTES:
        raise SystemExit(f"{folder.name} has {total} bytes")
    rms = {
        name: round(float(t.double().pow(2).mean().sqrt()), 2) for name, t in tensors.items() if t.is_floating_point()
    }
    print(f"{folder.name}: {total} bytes, least router gap {gap:.1e}, rms {rms}")


def main(names):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    transformers.utils.logging.disable_progress_bar()
    for name in names or FAMILIES:
        write(name)
    if not names:
        functions.write(HERE / "functions.json")


if __name__ == "__main__":
    main(sys.argv[1:])
