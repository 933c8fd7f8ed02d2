"""Small models that have a tower. No option has the value that hides it; see make_fixtures.py."""

from sizes import (
    CLIP,
    CLIP_TOWER,
    EXPERTS,
    GEMMA3,
    GEMMA4,
    GEMMA4_VISION,
    GLM4V_TOWER,
    GLM_MOE,
    HALF_ROTATED,
    INTERNVL_TOWER,
    LATENT,
    LLAMA4,
    LLAMA4_TOWER,
    PIXTRAL,
    SECTIONS,
    SHALLOW_TOWER,
    SIGLIP,
    SIZES,
    SMALL_TOWER,
    SQUARES,
    TEMPERED,
    VISION,
    VISION_2,
    WIDE_HEADS,
    YARN,
)

# name -> the class of its config, and what that says
TOWER_MODELS = {
    "llava": (
        "LlavaConfig",
        dict(
            text_config=dict(SIZES, model_type="llama", intermediate_size=40),
            vision_config=CLIP_TOWER,
            image_token_index=7,
        ),
    ),
    "llava_mistral": (
        "LlavaNextConfig",
        dict(
            text_config=dict(SIZES, model_type="mistral", sliding_window=8, intermediate_size=40),
            vision_config=CLIP_TOWER,
            image_token_index=7,
            image_grid_pinpoints=[[0, 0]],  # an image is one crop
        ),
    ),
    # Words meet another layer of the tower than graphs compute.
    "llava_words": (
        "LlavaConfig",
        dict(
            text_config=dict(SIZES, model_type="llama", intermediate_size=40),
            vision_config=dict(CLIP, model_type="clip_vision_model"),
            vision_feature_layer=-1,
        ),
    ),
    "llava_mistral_words": (
        "LlavaNextConfig",
        dict(
            text_config=dict(SIZES, model_type="mistral", sliding_window=8, intermediate_size=40),
            vision_config=dict(CLIP, model_type="clip_vision_model"),
            vision_feature_layer=-1,
        ),
    ),
    "internvl": (
        "InternVLConfig",
        dict(
            text_config=dict(SIZES, intermediate_size=64, model_type="qwen2"),
            vision_config=INTERNVL_TOWER,
            image_token_id=7,
            tie_word_embeddings=False,
        ),
    ),
    "internvl_qwen3": (
        "InternVLConfig",
        dict(
            text_config=dict(WIDE_HEADS, intermediate_size=56, model_type="qwen3"),
            vision_config=dict(
                INTERNVL_TOWER, norm_type="rms_norm", use_qk_norm=True, attention_bias=True, use_mean_pooling=False
            ),
            image_token_id=7,
        ),
    ),
    "glm4v": (
        "Glm4vConfig",
        dict(
            text_config=dict(SIZES, intermediate_size=52, rope_parameters=dict(HALF_ROTATED, mrope_section=[1, 1, 1])),
            vision_config=GLM4V_TOWER,
            image_token_id=7,
        ),
    ),
    "glm4v_moe": (
        "Glm4vMoeConfig",
        dict(
            text_config=dict(
                GLM_MOE,
                hidden_size=32,
                head_dim=12,
                intermediate_size=40,
                moe_intermediate_size=8,
                n_shared_experts=2,
                n_group=2,
                topk_group=1,
                rope_parameters=dict(HALF_ROTATED, mrope_section=[1, 1, 1]),
            ),
            vision_config=dict(GLM4V_TOWER, out_hidden_size=32),
            image_token_id=7,
        ),
    ),
    "mistral3": (
        "Mistral3Config",
        dict(text_config=dict(WIDE_HEADS, model_type="mistral", sliding_window=8, intermediate_size=64), vision_config=PIXTRAL),
    ),
    "mistral3_ministral3": (
        "Mistral3Config",
        dict(
            text_config=dict(
                WIDE_HEADS,
                model_type="ministral3",
                sliding_window=None,
                rope_parameters=TEMPERED,
                intermediate_size=64,
            ),
            vision_config=PIXTRAL,
        ),
    ),
    "mistral3_mistral4": (
        "Mistral3Config",
        dict(
            text_config=dict(
                LATENT,
                model_type="mistral4",
                hidden_size=32,
                intermediate_size=40,
                q_lora_rank=24,
                n_routed_experts=6,
                num_experts_per_tok=2,
                n_shared_experts=1,
                rope_parameters=TEMPERED,
            ),
            vision_config=PIXTRAL,
        ),
    ),
    "qwen3_vl": (  # one decoder layer more than what layers of the tower tell
        "Qwen3VLConfig",
        dict(
            text_config=dict(SIZES, head_dim=8, num_hidden_layers=3, intermediate_size=24, attention_bias=True, vocab_size=56),
            vision_config=dict(SMALL_TOWER, deepstack_visual_indexes=[0, 1]),
            image_token_id=7,
        ),
    ),
    "qwen3_vl_moe": (
        "Qwen3VLMoeConfig",
        dict(text_config=dict(SIZES | EXPERTS, head_dim=8, vocab_size=56), vision_config=SMALL_TOWER, image_token_id=7),
    ),
    "gemma3": (
        "Gemma3Config",
        dict(
            text_config=GEMMA3,
            vision_config=dict(SIGLIP, num_attention_heads=3, vision_use_head=False),
            mm_tokens_per_image=4,
            image_token_index=7,
        ),
    ),
    "gemma4": ("Gemma4Config", dict(text_config=dict(GEMMA4, pad_token_id=0), vision_config=GEMMA4_VISION, audio_config=None)),
    "gemma4_unified_text": (
        "Gemma4UnifiedTextConfig",
        dict(
            {key: value for key, value in GEMMA4.items() if key != "hidden_size_per_layer_input"},
            attention_k_eq_v=True,
            num_global_key_value_heads=1,
            use_bidirectional_attention=None,
        ),
    ),
    "llama4": (
        "Llama4Config",
        dict(
            text_config=dict(LLAMA4 | dict(head_dim=12), vocab_size=64, num_local_experts=4, intermediate_size_mlp=24),
            vision_config=LLAMA4_TOWER,
            image_token_index=7,
        ),
    ),
    "qwen2_vl": (
        "Qwen2VLConfig",
        dict(
            text_config=dict(SIZES, rope_parameters=SECTIONS, intermediate_size=36),
            vision_config=dict(VISION_2, hidden_size=48),
            image_token_id=7,
        ),
    ),
    "qwen2_5_vl": (
        "Qwen2_5_VLConfig",
        dict(
            text_config=dict(SIZES, rope_parameters=SECTIONS, intermediate_size=36),
            vision_config=dict(
                VISION | SQUARES, hidden_size=24, num_heads=3, intermediate_size=20, out_hidden_size=48
            ),
            image_token_id=7,
        ),
    ),
    # Two heads of the tower share one of keys.
    "exaone4_5": (
        "Exaone4_5_Config",
        dict(
            text_config=dict(
                SIZES,
                head_dim=14,
                model_type="exaone4",
                vocab_size=72,
                intermediate_size=36,
                sliding_window=7,
                layer_types=["sliding_attention", "full_attention"],
            ),
            vision_config=dict(
                SHALLOW_TOWER,
                hidden_size=24,
                num_heads=6,
                num_key_value_heads=3,
                intermediate_size=20,
            ),
            image_token_id=7,
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
}
