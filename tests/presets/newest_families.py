"""Families of late 2026, variations of those before them. See families.py."""

from expert_families import (
    EXPERT_FFN,
    EXPERTS,
    INDEXER,
    LATENT,
    LATENT_CUTS,
    LATENT_MESHES,
    MOE,
    REFUSED,
    ROUTED,
    TOWER,
    VISION_REDUCED,
    vision_tower,
)
from families import (
    BERT,
    DENSE,
    DIVIDED,
    ENCODER,
    EXPERT_MESHES,
    HEADS,
    KV,
    LLAMA,
    PER_HEAD,
    QK_NORM,
    Family,
    H,
    K,
    Q,
)
from further_families import CHOOSING, LFM2
from later_families import LOCAL
from recent_families import GRANITE, MLP_BIASES, PADDED, PIXTRAL, PIXTRAL_CONFIG
from slicing import experts, features, on_every_device, q_rows, side_by_side, whole

# A.X-K1's norm behind experts; A.X-K2's gated norms; GraniteSWAAttention: a sink for each head
OTHER_NORMS = [
    (r".*(mlp\.)?post_mlp_layernorm\.weight", whole),
    (r".*_layernorm\.norm\.weight", whole),
    (r".*_layernorm\.(W_down|W_up|mlp\.fc[12])\.weight", whole, whole),
    (r".*self_attn\.q_gate_proj\.weight", H, whole),
]
# Kolibri's correction and its norms behind attention and experts, as published and as the library has them
KOLIBRI = [
    (r".*moe\.router\.expert_bias", whole),
    (r".*(post_attn_norm|post_ffn_norm|post_self_attn_layernorm|post_mlp_layernorm)\.weight", whole),
]
# Lfm3Attention: a gate for each head; norms behind
LFM3 = [
    (r".*self_attn\.(gate_proj|g_proj)\.weight", Q, whole),
    (r".*self_attn\.[qk]_norm\.weight", whole),
    (r".*post_(operator|ffn)_norm\.weight", whole),
]
# A gate for each head; here the first layer has twice the heads
MANY = 2 * HEADS
MANY_ROWS = q_rows(MANY, MANY)
DOTS = [
    (r".*self_attn\.k_rope_only_layernorm\.weight", whole),
    (r".*layers\.1\.self_attn\.g_proj\.weight", H, whole),
    (r".*layers\.0\.self_attn\.(q_b_proj|kv_b_proj|g_proj)\.weight", MANY_ROWS, whole),
    (r".*layers\.0\.self_attn\.o_proj\.weight", whole, MANY_ROWS),
]
SINKS = [(r".*self_attn\.sinks", Q)]


def with_names_of_windows(config):
    """A config that says what layers with a window have under names of their own."""
    (of_window,) = (layer for layer in config.pop("per_layer_config").values() if layer)
    kinds = [kind.replace("indexed", "full") for kind in config["layer_types"]]
    rotated = config.pop("rope_parameters")
    thetas = dict(
        rope_theta=rotated["indexed_attention"]["rope_theta"],
        swa_rope_theta=rotated["sliding_attention"]["rope_theta"],
    )
    return config | {f"swa_{key}": value for key, value in of_window.items()} | thetas | dict(layer_types=kinds)


def mixtures():
    mellum = MOE | LOCAL | dict(mlp_layer_types=["dense", "sparse"])
    for suffix, stacked in (("", False), ("_stacked", True)):
        yield Family(
            "mellum" + suffix,
            "mellum",
            "MellumForCausalLM",
            "MellumConfig",
            DENSE | PADDED | mellum,
            LLAMA + QK_NORM + ROUTED,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
        )
    groups = dict(n_group=2, topk_group=1)
    for name, model, sizes, stacked in (
        ("axk1", "AXK1", LATENT | groups, False),
        ("axk1_stacked", "AXK1", LATENT | groups, True),
        ("mistral4", "Mistral4", LATENT, False),
        ("axk2", "AXK2", LATENT | INDEXER, False),
        ("axk2_stacked", "AXK2", LATENT | INDEXER, True),
    ):
        yield Family(
            name,
            name.removesuffix("_stacked"),
            f"{model}ForCausalLM",
            f"{model}Config",
            sizes | PADDED,
            LATENT_CUTS + CHOOSING + OTHER_NORMS,
            stacked=stacked,
            **LATENT_MESHES,
        )

    # Dots3NoteTextAttention: latents of another size and twice the heads, of other widths, in layers with a window
    dots = LATENT | INDEXER | LOCAL | dict(
        swa_num_attention_heads=MANY,
        swa_num_key_value_heads=MANY,
        swa_q_lora_rank=18,
        swa_kv_lora_rank=12,
        swa_head_dim=8,
        swa_qk_nope_head_dim=5,
        swa_v_head_dim=6,
    )
    yield Family(
        "dots3_note",
        "dots3_note",
        "Dots3NoteForCausalLM",
        "Dots3NoteTextConfig",
        dots | PADDED | dict(shared_experts_intermediate_size=14),
        LATENT_CUTS + CHOOSING + DOTS,
        says=with_names_of_windows,
        **LATENT_MESHES,
    )
    kolibri = {key: value for key, value in DENSE.items() if key != "intermediate_size"} | LOCAL | MOE
    for suffix, stacked in (("", False), ("_stacked", True)):
        yield Family(
            "kolibri1" + suffix,
            "kolibri1",
            "Kolibri1ForCausalLM",
            "Kolibri1Config",
            kolibri | PADDED | dict(shared_expert_intermediate_size=28),
            LLAMA + QK_NORM + ROUTED + CHOOSING + KOLIBRI,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
        )
    granite = dict(num_local_experts=EXPERTS, num_experts_per_tok=2, intermediate_size=EXPERT_FFN)
    granite |= LOCAL | dict(shared_intermediate_size=28)
    for suffix, stacked in (("", False), ("_stacked", True)):
        yield Family(
            "granitemoe_swa" + suffix,
            "granitemoe_swa",
            "GraniteMoeSWAForCausalLM",
            "GraniteMoeSWAConfig",
            DIVIDED | PADDED | granite,
            LLAMA + GRANITE + SINKS,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
        )


def hybrids():
    for suffix, stacked in (("", False), ("_held", True)):
        yield Family(
            "lfm3" + suffix,
            "lfm3",
            "Lfm3ForCausalLM",
            "Lfm3Config",
            DENSE | PADDED | dict(layer_types=["conv", "full_attention"], conv_bias=True, attention_bias=True),
            LFM2 + LFM3,
            reduced=(r".*\.(conv\.out_proj|self_attn\.o_proj)\.bias",),
            stacked=stacked,
        )


# MegatronBertLayer: norms before attention and MLP; MegatronBertEncoder: one behind the last layer
MEGATRON = [(r"bert\.encoder\.(layer\.\d+\.(attention\.)?)?ln\.(weight|bias)", whole)]


def encoders():
    yield Family(
        "megatron_bert",
        "megatron_bert",
        "MegatronBertForMaskedLM",
        "MegatronBertConfig",
        ENCODER,
        BERT + MEGATRON,
        refused=PER_HEAD,
        reduced=(r".*encoder\.layer\.\d+\.(attention\.)?output\.dense\.bias",),
    )
    yield Family(
        "eurobert",
        "eurobert",
        "EuroBertForMaskedLM",
        "EuroBertConfig",
        DIVIDED | PADDED | dict(attention_bias=True, mlp_bias=True),
        LLAMA + MLP_BIASES + [(r"lm_head\.bias", features)],
        reduced=(r".*(o_proj|down_proj)\.bias",),
    )


# Mistral Large 4 under its publisher's names and under the library's; here the second layer does not rotate
LARGE = [
    (r".*attention\.w(q|kv_b)\.weight", H, whole),
    (r".*attention\.wo\.weight", whole, H),
    (r".*attention\.wkv_a_with_mqa\.weight", whole, whole),
    (r".*(kv_a_norm|attention_norm|ffn_norm)\.weight", whole),
    (r".*(ssmax_scaling\.[sb]|softmax_scaling\.(scale|bias))", H),
    (r".*indexer\..*", on_every_device),
    (r"layers\.\d+\.(feed_forward|shared_experts|experts\.\d+)\.w[13]\.weight", features, whole),
    (r"layers\.\d+\.(feed_forward|shared_experts|experts\.\d+)\.w2\.weight", whole, features),
    (r"layers\.\d+\.gate\.weight", whole, whole),
    (r"(tok_embeddings|output)\.weight", features, whole),
    (r"norm\.weight", whole),
    (r".*alpha", whole),
    (r"vision_encoder\.transformer\.layers\.\d+\.attention\.w[qkv]\.weight", H, whole),
    (r"vision_encoder\.transformer\.layers\.\d+\.attention\.wo\.weight", whole, H),
    (r"vision_encoder\.transformer\.layers\.\d+\.feed_forward\.w[13]\.weight", features, whole),
    (r"vision_encoder\.transformer\.layers\.\d+\.feed_forward\.w2\.weight", whole, features),
    (r"(vision_encoder\.(ln_pre|patch_conv)|pre_mm_projector_norm|patch_merger|vision_language_adapter)\..*", on_every_device),
]


# Step3p7Attention: a gate for each head, here twice the heads in the second layer, of the same keys
MANY_QUERIES = q_rows(MANY, KV)
STEP = [
    (r".*layers\.0\.self_attn\.g_proj\.weight", Q, whole),
    (r".*layers\.1\.self_attn\.[qg]_proj\.weight", MANY_QUERIES, whole),
    (r".*layers\.1\.self_attn\.o_proj\.weight", whole, MANY_QUERIES),
    (r".*\.moe\.(gate|up)_proj\.weight", experts, features, whole),
    (r".*\.moe\.down_proj\.weight", experts, whole, features),
    (r".*\.moe\.gate\.weight", whole, whole),
    (r".*\.moe\.router_bias", whole),
    (r".*\.share_expert\.(gate|up)_proj\.weight", features, whole),
    (r".*\.share_expert\.down_proj\.weight", whole, features),
    (r"(model\.)?(vision_model|vit_large_projector|multi_modal_projector)\..*", on_every_device),
]


def without_graphs():
    step = DENSE | PADDED | dict(
        n_routed_experts=EXPERTS,
        num_experts_per_tok=2,
        moe_intermediate_size=EXPERT_FFN,
        share_expert_dim=28,
        layer_types=["full_attention", "sliding_attention"],
        mlp_layer_types=["dense", "sparse"],
        num_sliding_attention_heads=MANY,
        sliding_window=8,
    )
    tower = dict(hidden_size=24, num_hidden_layers=1, num_attention_heads=4, image_size=8, patch_size=2, mlp_ratio=2.0)
    for suffix, stacked in (("", False), ("_held", True)):
        yield Family(
            "step3p7" + suffix,
            "step3p7",
            "Step3p7ForConditionalGeneration",
            "Step3p7Config",
            dict(text_config=step, vision_config=tower),
            LLAMA + QK_NORM + ROUTED + CHOOSING + STEP,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
            layers={"model.language_model." if stacked else "model.": 2},
        )
    large = {key: value for key, value in LATENT.items() if key != "q_lora_rank"} | INDEXER | PADDED
    large |= dict(indexer_types=["full", "shared"], no_rope_layers=[1, 0])
    for suffix, stacked in (("", False), ("_held", True)):
        yield Family(
            "mistral_large4" + suffix,
            "mistral_large4",
            "MistralLarge4ForConditionalGeneration",
            "MistralLarge4Config",
            dict(text_config=large, vision_config=PIXTRAL_CONFIG),
            LATENT_CUTS + PIXTRAL + LARGE,
            stacked=stacked,
            **LATENT_MESHES,
        )


def multimodal():
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
