"""Families that came with the last graphs, old and new. See families.py."""

from expert_families import (
    EXPERT_FFN,
    EXPERTS,
    REFUSED,
    ROUTED,
    TOWER,
    encoder_layers,
    next_token_layer,
    vision_tower,
)
from families import (
    ATTENTION,
    DENSE,
    DIVIDED,
    EXPERT_MESHES,
    FEW_EXPERTS,
    FFN,
    GPT_NORMS,
    HEADS,
    HIDDEN,
    LEGAL,
    LLAMA,
    NORMS,
    PER_HEAD,
    QK_NORM,
    VOCAB,
    VOCABULARY,
    Family,
    H,
    Q,
)
from slicing import experts, features, in_groups, on_every_device, q_rows, side_by_side, two_halves, whole

# The bias that chooses experts, and a dense layer for a further token behind two norms and a projection
CHOOSING = [(r".*mlp\.(gate\.)?e_score_correction_bias", whole)]
MTP_TENSORS = [
    ("mtp.fc.weight", HIDDEN, 2 * HIDDEN),
    ("mtp.norm.weight", HIDDEN),
    ("mtp.pre_fc_norm_embedding.weight", HIDDEN),
    ("mtp.pre_fc_norm_hidden.weight", HIDDEN),
]
MTP_CUTS = [(r"mtp\.fc\.weight", whole, whole), (r"mtp\.(norm|pre_fc_norm_(embedding|hidden))\.weight", whole)]


def mixtures():
    sizes = dict(moe_intermediate_size=EXPERT_FFN, num_experts=EXPERTS, num_experts_per_tok=2, pad_token_id=0)
    local = dict(layer_types=["sliding_attention", "full_attention"])
    further = next_token_layer("model.layers.0.", "mtp.layers.0.", *MTP_TENSORS)
    for name, published in (("exaone_moe", None), ("exaone_moe_published", further)):
        yield Family(
            name,
            "exaone_moe",
            "ExaoneMoeForCausalLM",
            "ExaoneMoeConfig",
            DENSE | sizes | local,
            LLAMA + QK_NORM + ROUTED + CHOOSING + MTP_CUTS,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            published=published,
        )


# Lfm2ShortConv.forward: in_proj(x).chunk(3) along its outputs; Lfm2MLP: w2(silu(w1(x)) * w3(x))
def three_parts(rank, n):
    return side_by_side(*[(n // 3, features)] * 3)(rank, n)


LFM2 = LLAMA + [
    (r".*self_attn\.out_proj\.weight", whole, Q),
    (r".*self_attn\.[qk]_layernorm\.weight", whole),
    (r"model\.embedding_norm\.weight", whole),
    (r".*conv\.in_proj\.weight", three_parts, whole),
    (r".*conv\.in_proj\.bias", three_parts),
    (r".*conv\.conv\.weight", features, whole, whole),
    (r".*conv\.conv\.bias", features),
    (r".*conv\.out_proj\.weight", whole, features),
    (r".*conv\.out_proj\.bias", whole),
    (r".*feed_forward\.(experts\.\d+\.)?w[13]\.weight", features, whole),
    (r".*feed_forward\.(experts\.\d+\.)?w2\.weight", whole, features),
    (r".*feed_forward\.gate\.weight", whole, whole),
    (r".*feed_forward\.expert_bias", whole),
    (r".*feed_forward\.experts\.gate_up_proj", experts, two_halves, whole),
    (r".*feed_forward\.experts\.down_proj", experts, whole, features),
]
# MambaMixer.forward: in_proj(x).chunk(2); every feature has a state and rates of its own
MAMBA = VOCABULARY + [
    (r".*(mixer|mamba)\.in_proj\.weight", two_halves, whole),
    (r".*(mixer|mamba)\.in_proj\.bias", two_halves),
    (r".*(mixer|mamba)\.conv1d\.weight", features, whole, whole),
    (r".*(mixer|mamba)\.(conv1d\.bias|dt_proj\.bias|D)", features),
    (r".*(mixer|mamba)\.x_proj\.weight", whole, features),
    (r".*(mixer|mamba)\.(dt_proj\.weight|A_log)", features, whole),
    (r".*(mixer|mamba)\.out_proj\.weight", whole, features),
    (r".*(mixer|mamba)\.out_proj\.bias", whole),
    (r".*\.(norm|norm_f)\.weight", whole),
]
JAMBA = [
    (r".*(mamba\.(dt|b|c)|final)_layernorm\.weight", whole),
    (r".*feed_forward\.(experts\.\d+\.)?(gate|up)_proj\.weight", features, whole),
    (r".*feed_forward\.(experts\.\d+\.)?down_proj\.weight", whole, features),
    (r".*feed_forward\.router\.weight", whole, whole),
    (r".*feed_forward\.experts\.gate_up_proj", experts, two_halves, whole),
    (r".*feed_forward\.experts\.down_proj", experts, whole, features),
]


def dense():
    """ApertusMLP: down_proj(act_fn(up_proj(x))), with numbers of act_fn's own."""
    own = [(r".*act_fn\.alpha_[pn]", whole), (r".*act_fn\.(beta|eps)",)]
    sizes = DENSE | dict(pad_token_id=0)
    yield Family("apertus", "apertus", "ApertusForCausalLM", "ApertusConfig", sizes, LLAMA + QK_NORM + own)


def hybrids():
    reduced = (r".*\.(conv|mamba|mixer)\.out_proj\.bias",)
    short = DIVIDED | dict(layer_types=["conv", "full_attention"], conv_bias=True, pad_token_id=0)
    for name, more in (("lfm2", {}), ("lfm2_plain", dict(block_auto_adjust_ff_dim=False))):
        yield Family(name, "lfm2", "Lfm2ForCausalLM", "Lfm2Config", short | more, LFM2, reduced=reduced)
    moe = dict(num_dense_layers=1, moe_intermediate_size=EXPERT_FFN, num_experts=EXPERTS, num_experts_per_tok=2)
    for name, stacked in (("lfm2_moe", False), ("lfm2_moe_stacked", True)):
        yield Family(
            name,
            "lfm2_moe",
            "Lfm2MoeForCausalLM",
            "Lfm2MoeConfig",
            short | moe,
            LFM2,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            reduced=reduced,
            stacked=stacked,
        )
    states = dict(vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=2, state_size=6, use_bias=True)
    for name, model in (("mamba", "Mamba"), ("falcon_mamba", "FalconMamba")):
        yield Family(
            name,
            "mamba",
            f"{model}ForCausalLM",
            f"{model}Config",
            states,
            MAMBA,
            refused={"tp=128": "E0210"},
            reduced=reduced,
        )
    # MiniMaxLightningAttention.forward: reshape(heads, 3 * head_dim).split(head_dim)
    lightning = [
        (r".*self_attn\.qkv_proj\.weight", Q, whole),
        (r".*self_attn\.output_gate\.weight", Q, whole),
        (r".*self_attn\.norm\.weight", Q),
        (r".*self_attn\.out_proj\.weight", whole, Q),
        (r".*self_attn\.(slope_rate|query_decay|key_decay)", Q, whole, whole),
        (r".*self_attn\.diagonal_decay", whole, Q, whole, whole),
        (r".*block_sparse_moe\.gate\.weight", whole, whole),
        (r".*block_sparse_moe\.experts\.\d+\.w[13]\.weight", features, whole),
        (r".*block_sparse_moe\.experts\.\d+\.w2\.weight", whole, features),
    ]
    local = dict(num_local_experts=EXPERTS, num_experts_per_tok=2, intermediate_size=EXPERT_FFN, block_size=4)
    yield Family(
        "minimax",
        "minimax",
        "MiniMaxForCausalLM",
        "MiniMaxConfig",
        DENSE | local | dict(layer_types=["linear_attention", "full_attention"]),
        LLAMA + lightning,
        meshes=EXPERT_MESHES,
        refused=REFUSED,
    )
    sizes = DIVIDED | dict(attn_layer_period=2, attn_layer_offset=1, num_experts=EXPERTS, mamba_proj_bias=True)
    for name, stacked in (("jamba", False), ("jamba_stacked", True)):
        yield Family(
            name,
            "jamba",
            "JambaForCausalLM",
            "JambaConfig",
            sizes,
            LLAMA + MAMBA + JAMBA,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            reduced=reduced,
            stacked=stacked,
        )


GPTJ = (
    VOCABULARY
    + GPT_NORMS
    + [
        (r"lm_head\.bias", features),
        (r".*h\.\d+\.attn\.[qkv]_proj\.weight", H, whole),
        (r".*h\.\d+\.attn\.out_proj\.weight", whole, H),
        (r".*h\.\d+\.mlp\.fc_in\.weight", features, whole),
        (r".*h\.\d+\.mlp\.fc_in\.bias", features),
        (r".*h\.\d+\.mlp\.fc_out\.weight", whole, features),
        (r".*h\.\d+\.mlp\.fc_out\.bias", whole),
    ]
)


def in_four(rank, n):
    """CodeGenAttention.forward: reshape(4, -1).split(local_dim), so that a quarter of the heads is together."""
    return in_groups(4, (n // 12,) * 3, lambda r: r.part(4))(rank, n)


def heads_in_four(rank, n):
    return in_groups(4, (n // 4,), lambda r: r.part(4))(rank, n)


def generative():
    small = dict(vocab_size=VOCAB, n_positions=64, n_embd=HIDDEN, n_layer=2, n_head=HEADS, n_inner=FFN, rotary_dim=4)
    fused = [
        (r".*h\.\d+\.attn\.qkv_proj\.weight", in_four, whole),
        (r".*h\.\d+\.attn\.out_proj\.weight", whole, heads_in_four),
    ]
    reduced = (r".*fc_out\.bias",)
    yield Family("gptj", "gptj", "GPTJForCausalLM", "GPTJConfig", small, GPTJ, refused=PER_HEAD, reduced=reduced)
    yield Family("gptj_bare", "gptj", "GPTJModel", "GPTJConfig", small, GPTJ, refused=PER_HEAD, reduced=reduced)
    yield Family(
        "codegen",
        "codegen",
        "CodeGenForCausalLM",
        "CodeGenConfig",
        small,
        GPTJ + fused,
        meshes=("tp=1", "tp=2", "tp=3", "tp=4", "pp=2,tp=2"),
        refused={"tp=8": "E0214"},
        reduced=reduced,
    )


STACKS = dict(
    vocab_size=VOCAB,
    d_model=HIDDEN,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=HEADS,
    decoder_attention_heads=HEADS,
    encoder_ffn_dim=FFN,
    decoder_ffn_dim=FFN,
    max_position_embeddings=64,
)
STACK = r"(model\.)?(encoder|decoder)\."
STACK_LAYER = STACK + r"layers\.\d+\."
STACK_ATTENTION = STACK_LAYER + r"(self_attn|encoder_attn)\."
STACK_CUTS = VOCABULARY + [
    (r"final_logits_bias", whole, features),
    (STACK + r"embed_positions\.weight", whole, whole),
    (STACK_ATTENTION + r"[qkv]_proj\.weight", H, whole),
    (STACK_ATTENTION + r"[qkv]_proj\.bias", H),
    (STACK_ATTENTION + r"out_proj\.weight", whole, H),
    (STACK_ATTENTION + r"out_proj\.bias", whole),
    (STACK_LAYER + r"fc1\.weight", features, whole),
    (STACK_LAYER + r"fc1\.bias", features),
    (STACK_LAYER + r"fc2\.weight", whole, features),
    (STACK_LAYER + r"fc2\.bias", whole),
    (STACK + r"(layers\.\d+\.)?([a-z_]*layer_norm|layernorm_embedding)\.(weight|bias)", whole),
]


def encoders():
    for name, model, config in (
        ("bart", "BartForConditionalGeneration", "BartConfig"),
        ("mbart", "MBartForConditionalGeneration", "MBartConfig"),
    ):
        reduced = (r".*(out_proj|fc2)\.bias",)
        yield Family(name, "bart", model, config, STACKS, STACK_CUTS, refused=PER_HEAD, reduced=reduced)


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


def multimodal():
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
