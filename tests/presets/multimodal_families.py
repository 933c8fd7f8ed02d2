"""Language models with a tower for images or sound. See family_parts.py."""

from family_parts import (
    ATTENTION,
    CHOOSING,
    DENSE,
    DIVIDED,
    EXPERTS,
    EXPERT_FFN,
    EXPERT_MESHES,
    FEW_EXPERTS,
    HEADS,
    HIDDEN,
    K,
    KV,
    LATENT,
    LATENT_CUTS,
    LATENT_MESHES,
    LEGAL,
    LLAMA,
    LLAMA4,
    LLAMA4_REDUCED,
    LLAMA4_TEXT,
    MESHES,
    MOE,
    NORMS,
    PADDED,
    PIXTRAL,
    PIXTRAL_CONFIG,
    Q,
    QK_NORM,
    REFUSED,
    ROUTED,
    TOWER,
    VISION_REDUCED,
    VOCABULARY,
    WIDE_TOWER,
    Family,
    encoder_layers,
    llama4_vision,
    vision_tower,
    with_heads,
)
from slicing import experts, features, on_every_device, q_rows, side_by_side, two_halves, whole


def kimi():
    """The tower's attention: view(heads, head_dim) of q, k and v, which are published one below the other."""
    v, tower = q_rows(6, 6), r"(model\.)?vision_tower\.(encoder\.blocks|layers)\.\d+\."
    fused = side_by_side((24, v), (24, v), (24, v))
    cuts = LATENT_CUTS + [
        (tower + r"wqkv\.weight", fused, whole),
        (tower + r"wqkv\.bias", fused),
        (tower + r"attn\.[qkv]_proj\.weight", v, whole),
        (tower + r"attn\.[qkv]_proj\.bias", v),
        (tower + r"(wo|attn\.proj)\.weight", whole, v),
        (tower + r"(wo|attn\.proj)\.bias", whole),
        (r"vision_tower\.encoder\.blocks\.\d+\.mlp\.fc0\.weight", features, whole),
        (r"vision_tower\.encoder\.blocks\.\d+\.mlp\.fc0\.bias", features),
        (r"vision_tower\.encoder\.blocks\.\d+\.mlp\.fc1\.weight", whole, features),
        (r"vision_tower\.encoder\.blocks\.\d+\.mlp\.fc1\.bias", whole),
        (r"model\.vision_tower\.layers\.\d+\.mlp\.fc1\.weight", features, whole),
        (r"model\.vision_tower\.layers\.\d+\.mlp\.fc1\.bias", features),
        (r"model\.vision_tower\.layers\.\d+\.mlp\.fc2\.weight", whole, features),
        (r"model\.vision_tower\.layers\.\d+\.mlp\.fc2\.bias", whole),
        (tower + r"norm\d\.(weight|bias)", whole),
        (r"(model\.)?vision_tower\.(encoder\.)?final_layernorm\.(weight|bias)", whole),
        (r"(model\.)?vision_tower\.patch_embed\.proj\.weight", whole, whole, whole, whole),
        (r"(model\.)?vision_tower\.patch_embed\.proj\.bias", whole),
        (r"(model\.)?vision_tower\.patch_embed\.pos_emb\.(weight|position_embeddings)", whole, whole, whole),
        (r"(model\.)?mm_projector\.(proj\.\d|in_proj|out_proj)\.weight", whole, whole),
        (r"(model\.)?mm_projector\.(proj\.\d|in_proj|out_proj|pre_norm)\.bias", whole),
        (r"(model\.)?mm_projector\.pre_norm\.weight", whole),
    ]
    tower_sizes = dict(
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=6,
        intermediate_size=36,
        patch_size=2,
        pos_emb_height=2,
        pos_emb_width=2,
        pos_emb_time=2,
    )
    published = (
        (r"^language_model\.model\.blocks\.", "language_model.model.layers."),
        (r"^vision_tower\.encoder\.patch_embed\.", "vision_tower.patch_embed."),
        (r"^model\.mm_projector\.", "mm_projector."),
    )
    for form, more in (("", dict(renamed=published)), ("_held", dict(stacked=True))):
        yield Family(
            "kimi_k25" + form,
            "kimi_k25",
            "Kimi_K25ForConditionalGeneration",
            "Kimi_K25Config",
            dict(
                text_config=dict(LATENT, n_group=2, topk_group=1, num_nextn_predict_layers=0),
                vision_config=tower_sizes,
                projection_hidden_size=24,
                tie_word_embeddings=False,
            ),
            cuts,
            meshes=tuple(mesh for mesh in EXPERT_MESHES if "tp=8" not in mesh),
            refused=dict(FEW_EXPERTS, **{"tp=8": "E0210", "tp=16": "E0210"}),
            reduced=(r".*vision_tower.*\.wo\.bias", r".*blocks.*fc1\.bias", r".*tower\.layers.*(fc2|attn\.proj)\.bias"),
            **more,
        )


def plain():
    meshes, refused = ("tp=1", "tp=2", "tp=3", "tp=4", "pp=2,tp=2"), {"tp=6": "E0214", "tp=8": "E0210"}
    for name, model, vision in (
        (
            "qwen2_vl",
            "Qwen2VL",
            dict(depth=2, embed_dim=24, hidden_size=HIDDEN, num_heads=6, mlp_ratio=3, patch_size=2),
        ),
        ("qwen2_5_vl", "Qwen2_5_VL", dict(TOWER, fullatt_block_indexes=[1])),
    ):
        for form, stacked in (("", False), ("_held", True)):
            yield Family(
                name + form,
                name,
                f"{model}ForConditionalGeneration",
                f"{model}Config",
                dict(text_config=DIVIDED, vision_config=vision),
                LLAMA + vision_tower(6),
                meshes=meshes,
                refused=refused,
                reduced=VISION_REDUCED,
                stacked=stacked,
            )
    yield Family(
        "qwen3_vl",
        "qwen3_vl",
        "Qwen3VLForConditionalGeneration",
        "Qwen3VLConfig",
        dict(text_config=DENSE, vision_config=dict(TOWER, num_position_embeddings=16, deepstack_visual_indexes=[0, 1])),
        LLAMA + QK_NORM + vision_tower(6),
        meshes=meshes,
        refused=refused,
        reduced=VISION_REDUCED,
    )
    small = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=6, image_size=4, patch_size=2)
    siglip = r"(model\.)?vision_tower\.(vision_model\.)?"
    gemma = (
        [cut for cut in LLAMA + QK_NORM]
        + encoder_layers(siglip + r"encoder\.", "out_proj", 6)
        + [
            (siglip + r"embeddings\.patch_embedding\.weight", whole, whole, whole, whole),
            (siglip + r"embeddings\.patch_embedding\.bias", whole),
            (siglip + r"embeddings\.position_embedding\.weight", whole, whole),
            (siglip + r"post_layernorm\.(weight|bias)", whole),
            (siglip + r"head\.probe", whole, whole, whole),
            (siglip + r"head\.(attention\.in_proj_|attention\.out_proj\.|mlp\.fc[12]\.)weight", whole, whole),
            (siglip + r"head\.(attention\.in_proj_|attention\.out_proj\.|mlp\.fc[12]\.)bias", whole),
            (siglip + r"head\.layernorm\.(weight|bias)", whole),
            (r"(model\.)?multi_modal_projector\.mm_input_projection_weight", whole, whole),
            (r"(model\.)?multi_modal_projector\.mm_soft_emb_norm\.weight", whole),
        ]
    )
    for form, stacked in (("", False), ("_held", True)):
        yield Family(
            "gemma3" + form,
            "gemma3",
            "Gemma3ForConditionalGeneration",
            "Gemma3Config",
            dict(
                text_config=dict(DENSE, head_dim=256),
                vision_config=dict(small, intermediate_size=36),
                mm_tokens_per_image=4,
            ),
            gemma,
            meshes=meshes,
            refused=refused,
            reduced=(r".*vision_tower.*encoder.*(out_proj|fc2)\.bias",),
            stacked=stacked,
            leave_out=("text_config.num_attention_heads", "text_config.num_key_value_heads", "text_config.head_dim"),
        )
    yield from kimi()
    text = LLAMA4_TEXT
    llama4 = LLAMA4
    yield Family(
        "llama4_text",
        "llama4",
        "Llama4ForCausalLM",
        "Llama4TextConfig",
        text,
        llama4,
        meshes=EXPERT_MESHES,
        refused=REFUSED,
    )
    yield Family(
        "llama4",
        "llama4",
        "Llama4ForConditionalGeneration",
        "Llama4Config",
        dict(
            text_config=text,
            vision_config=dict(
                small, intermediate_size=96, vision_output_dim=20, projector_input_dim=20, projector_output_dim=20
            ),
        ),
        llama4 + llama4_vision(6),
        meshes=tuple(mesh for mesh in EXPERT_MESHES if "tp=8" not in mesh),
        refused=dict(FEW_EXPERTS, **{"tp=6": "E0214", "tp=8": "E0210"}),
        reduced=LLAMA4_REDUCED,
    )


# Qwen3VLMoeTextExperts is handed them transposed, and its chunk(2) is of the outputs.
TRANSPOSED = [
    (r".*mlp\.experts\.gate_up_proj", experts, whole, two_halves),
    (r".*mlp\.experts\.down_proj", experts, features, whole),
]


def mistral3():
    """Mistral, and Pixtral's tower."""
    for name, text in (("mistral3", "mistral"), ("mistral3_ministral3", "ministral3")):
        sizes = dict(text_config=dict(DENSE, model_type=text), vision_config=PIXTRAL_CONFIG)
        model = "Mistral3ForConditionalGeneration"
        yield Family(name, "mistral3", model, "Mistral3Config", sizes, LLAMA + PIXTRAL, reduced=())


def with_pixtral():
    yield from mistral3()
    cuts = LLAMA + QK_NORM + ROUTED + TRANSPOSED
    vision = dict(num_position_embeddings=16, deepstack_visual_indexes=[0, 1])
    yield Family(
        "qwen3_vl_moe",
        "qwen3_vl_moe",
        "Qwen3VLMoeForConditionalGeneration",
        "Qwen3VLMoeConfig",
        dict(text_config=DENSE | MOE | dict(mlp_only_layers=[0]), vision_config=dict(TOWER, **vision)),
        cuts + vision_tower(6),
        meshes=tuple(mesh for mesh in EXPERT_MESHES if "tp=8" not in mesh),
        refused=dict(FEW_EXPERTS, **{"tp=6": "E0214", "tp=8": "E0210"}),
        reduced=VISION_REDUCED,
        transposed=r".*mlp\.experts\.(gate_up|down)_proj",
    )
    wide = dict(hidden_size=2048, num_attention_heads=16, num_key_value_heads=16)
    experts_of_text = dict(moe_intermediate_size=8, num_experts=60, num_experts_per_tok=2, mlp_only_layers=[0])
    yield Family(
        "qwen3_vl_moe_defaults",
        "qwen3_vl_moe",
        "Qwen3VLMoeForConditionalGeneration",
        "Qwen3VLMoeConfig",
        dict(
            text_config=DENSE | wide | experts_of_text,
            vision_config=WIDE_TOWER | vision | dict(num_heads=16, out_hidden_size=2048),
        ),
        with_heads(cuts, 16, 16) + vision_tower(16, 32),
        meshes=(*MESHES, "ep=4,tp=2"),
        refused={"tp=32": "E0214", "ep=64": "E0210"},
        reduced=VISION_REDUCED,
        transposed=r".*mlp\.experts\.(gate_up|down)_proj",
        leave_out=(
            "text_config.num_attention_heads",
            "text_config.num_key_value_heads",
            "text_config.num_local_experts",
            "text_config.hidden_size",
            "vision_config.num_heads",
        ),
    )


def tower(names):
    return [(rf"(model\.)?({names})\..*|(.*\.)?image_newline", on_every_device)]


def clip_models(clip):
    """CLIPAttention.forward in all layers of the tower; the rest of it is whole."""
    for name, model, text, tells in (
        ("llava", "Llava", "llama", {}),
        ("llava_mistral", "LlavaNext", "mistral", {}),
        ("llava_words", "Llava", "llama", dict(vision_feature_layer=-1)),
        ("llava_mistral_words", "LlavaNext", "mistral", dict(vision_feature_layer=-1)),
    ):
        yield Family(
            name,
            "llava",
            f"{model}ForConditionalGeneration",
            f"{model}Config",
            dict(text_config=dict(DENSE, model_type=text), vision_config=clip, **tells),
            LLAMA + tower("vision_tower|multi_modal_projector") + encoder_layers(r"vision_tower\.encoder\.", "out_proj", 6),
            meshes=tuple(mesh for mesh in LEGAL if mesh != "tp=8"),
            refused={"tp=6": "E0214", "tp=8": "E0210"},
            reduced=(r".*vision_tower.*(out_proj|fc2)\.bias",),
        )


def with_clip():
    """The language model under a prefix, beside a tower."""
    vision = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    vision |= dict(image_size=8, patch_size=4)
    clip = dict(vision, model_type="clip_vision_model", num_hidden_layers=2, hidden_size=24, num_attention_heads=6)
    yield from clip_models(clip)
    glm = VOCABULARY + ATTENTION + NORMS
    glm += [(r".*mlp\.gate_up_proj\.weight", two_halves, whole), (r".*mlp\.down_proj\.weight", whole, features)]
    sections = dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5, mrope_section=[1, 1, 1])
    visual = dict(TOWER, depth=1, hidden_size=12, out_hidden_size=HIDDEN, intermediate_size=8, image_size=8)
    # InternVLVisionAttention.forward: reshape(heads, -1) of each of q, k and v; fc2(act(fc1)), linear_2(act(linear_1))
    h, block = q_rows(6, 6), r"vision_tower\.encoder\.layer\.\d+\."
    up, down = rf"({block}mlp\.fc1|multi_modal_projector\.linear_1)", rf"({block}mlp\.fc2|multi_modal_projector\.linear_2)"
    internvl = tower("vision_tower|multi_modal_projector") + [
        (block + r"attention\.[qkv]_proj\.weight", h, whole),
        (block + r"attention\.[qkv]_proj\.bias", h),
        (block + r"attention\.projection_layer\.weight", whole, h),
        (up + r"\.weight", features, whole),
        (up + r"\.bias", features),
        (down + r"\.weight", whole, features),
    ]
    vision = dict(vision, hidden_size=12, num_attention_heads=6, attention_bias=True, use_qk_norm=True)
    for name, text, cuts in (
        ("internvl", dict(DIVIDED, model_type="qwen2"), LLAMA),
        ("internvl_qwen3", dict(DENSE, model_type="qwen3"), LLAMA + QK_NORM),
    ):
        yield Family(
            name,
            "internvl",
            "InternVLForConditionalGeneration",
            "InternVLConfig",
            dict(text_config=text, vision_config=vision),
            cuts + internvl,
            meshes=tuple(mesh for mesh in LEGAL if mesh != "tp=8"),
            refused={"tp=6": "E0214", "tp=8": "E0210"},
            reduced=(block + r"attention\.projection_layer\.bias", down + r"\.bias"),
        )
    # Glm4vVisionPatchMerger.forward: down_proj(act(gate_proj(x)) * up_proj(x)); the rest of the tower is whole
    merger = [
        (r".*visual\.merger\.(gate|up)_proj\.weight", features, whole),
        (r".*visual\.merger\.down_proj\.weight", whole, features),
    ]
    merger = tower("visual") + vision_tower(6, 12) + merger
    moe = dict(moe_intermediate_size=EXPERT_FFN, n_routed_experts=EXPERTS, num_experts_per_tok=2, n_shared_experts=1)
    for name, model, text, cuts, meshes, refused in (
        ("glm4v", "Glm4v", DIVIDED, glm, LEGAL, {}),
        ("glm4v_moe", "Glm4vMoe", DENSE | moe, LLAMA + ROUTED + CHOOSING, EXPERT_MESHES, FEW_EXPERTS),
    ):
        yield Family(
            name,
            name,
            f"{model}ForConditionalGeneration",
            f"{model}Config",
            dict(text_config=dict(text, rope_parameters=sections), vision_config=visual),
            cuts + merger,
            meshes=tuple(mesh for mesh in meshes if mesh != "tp=8"),
            refused=refused | {"tp=6": "E0214", "tp=8": "E0210"},
        )


def of_windows():
    # Exaone4_5_VisionAttention.forward: qkv(x).split([q_dim, kv_dim, kv_dim])
    qkv = side_by_side((24, Q), (12, K), (12, K))
    yield Family(
        "exaone4_5",
        "exaone4_5",
        "Exaone4_5_ForConditionalGeneration",
        "Exaone4_5_Config",
        dict(
            text_config=DENSE | PADDED | dict(model_type="exaone4"),
            vision_config=TOWER | dict(num_heads=HEADS, num_key_value_heads=KV),
        ),
        LLAMA
        + QK_NORM
        + vision_tower(HEADS)
        + [
            (r".*visual\.blocks\.\d+\.attn\.qkv\.weight", qkv, whole),
            (r".*visual\.blocks\.\d+\.attn\.qkv\.bias", qkv),
            (r".*visual\.blocks\.\d+\.attn\.proj\.weight", whole, Q),
        ],
        reduced=VISION_REDUCED,
    )
    yield Family(
        "mistral3_mistral4",
        "mistral3_mistral4",
        "Mistral3ForConditionalGeneration",
        "Mistral3Config",
        dict(text_config=LATENT | PADDED | dict(model_type="mistral4"), vision_config=PIXTRAL_CONFIG),
        LATENT_CUTS + PIXTRAL,
        **LATENT_MESHES,
    )
