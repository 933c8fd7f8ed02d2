"""Families that are cut and have no graph. See family_parts.py."""

from family_parts import (
    CHOOSING,
    DENSE,
    DIVIDED,
    EXPERTS,
    EXPERT_FFN,
    EXPERT_MESHES,
    FEW_EXPERTS,
    FFN,
    GATED,
    H,
    HIDDEN,
    INDEXER,
    KV,
    LATENT,
    LATENT_CUTS,
    LATENT_MESHES,
    LINEAR,
    LINEAR_CUTS,
    LLAMA,
    MANY,
    MINIMAX,
    MOE,
    NORMS,
    PADDED,
    PIXTRAL,
    PIXTRAL_CONFIG,
    Q,
    QK_NORM,
    REFUSED,
    ROUTED,
    VOCABULARY,
    Family,
)
from slicing import experts, features, kv_rows, on_every_device, q_rows, side_by_side, two_halves, whole


# JetMoeMoA: queries and outputs are experts, and every head of keys serves the head of its number in each
JET = kv_rows(KV, KV)
JETMOE = [
    (r".*self_attention\.kv_proj\.weight", side_by_side((24, JET), (24, JET)), whole),
    (r".*self_attention\.experts\.input_linear\.weight", experts, JET, whole),
    (r".*self_attention\.experts\.output_linear\.weight", experts, whole, JET),
    (r".*mlp\.input_linear\.weight", experts, two_halves, whole),
    (r".*mlp\.output_linear\.weight", experts, whole, features),
    (r".*router\.layer\.weight", whole, whole),
    (r".*(mlp|self_attention\.experts)\.bias", whole),
]
M3 = MINIMAX + [
    (r".*block_sparse_moe\.shared_experts\.(gate|up)_proj\.weight", features, whole),
    (r".*block_sparse_moe\.shared_experts\.down_proj\.weight", whole, features),
    (r".*mlp\.gate\.(e_score_correction_bias)", whole),
    (r".*mlp\.(shared_experts\.)?gate_up_proj\.weight", two_halves, whole),
    (r".*self_attn\.(index_|indexer\.).*norm\.weight", whole),
    (r".*self_attn\.(index_|indexer\.).*proj\.weight", whole, whole),
    (r"(model\.)?(vision_tower|multi_modal_projector|patch_merge_mlp)\..*", on_every_device),
]


def text():
    yield Family(
        "jetmoe",
        "jetmoe",
        "JetMoeForCausalLM",
        "JetMoeConfig",
        {key: value for key, value in DIVIDED.items() if key != "num_attention_heads"}
        | PADDED
        | dict(kv_channels=6, num_local_experts=EXPERTS),
        VOCABULARY + NORMS + JETMOE,
        meshes=tuple(mesh for mesh in EXPERT_MESHES if mesh != "tp=8"),
        refused=dict(FEW_EXPERTS, **{"tp=8": "E0210"}),
        reduced=(r".*(mlp|self_attention\.experts)\.bias",),
    )
    text = dict(
        DENSE,
        **PADDED,
        rotary_dim=2,
        dense_intermediate_size=FFN,
        intermediate_size=EXPERT_FFN,
        shared_intermediate_size=28,
        num_local_experts=EXPERTS,
        num_experts_per_tok=2,
        index_n_heads=KV,
        index_head_dim=4,
        layer_types=["full_attention", "minimax_m3_sparse"],
        mlp_layer_types=["dense", "sparse"],
    )
    vision = dict(hidden_size=HIDDEN, intermediate_size=32, num_hidden_layers=1, num_attention_heads=4, patch_size=2)
    for suffix, stacked in (("", False), ("_stacked", True)):
        yield Family(
            "minimax_m3_vl" + suffix,
            "minimax_m3_vl",
            "MiniMaxM3SparseForConditionalGeneration",
            "MiniMaxM3VLConfig",
            dict(text_config=text, vision_config=dict(vision, image_size=8), projector_hidden_size=HIDDEN),
            LLAMA + QK_NORM + ROUTED + M3,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
            layers={"model.language_model." if stacked else "language_model.model.": 2},
        )
    # Qwen4ExpDecoderLayer: streams around attention and experts, a table of n-grams beside the first layer
    qwen = [
        (r".*hyper_connection(_mixer)?\..*", on_every_device),
        (r".*self_attn\.indexer\..*", on_every_device),
        (r".*ple\..*", on_every_device),
        (r".*ple\.ple_embedding\.ngram_embedding\..*", whole, features),
    ]
    tables = dict(ple_layer_ids=[1], ple_embed_dim=16, ngram_vocab_size_base=50, make_ngram_vocab_size_divisible_by=8)
    tables |= dict(heads_per_ngram=2, split_ngram_parts=4, eos_token_id=2, hc_lowrank=7)
    tables |= dict(layer_types=["linear_attention", "indexed_attention"])
    index = dict(indexer_n_heads=4, indexer_kv_heads=1, indexer_head_dim=6, indexer_budget=8, indexer_compress_ratio=2)
    for suffix, stacked in (("", False), ("_stacked", True)):
        yield Family(
            "qwen4_exp_text" + suffix,
            "qwen4_exp",
            "Qwen4ExpForCausalLM",
            "Qwen4ExpTextConfig",
            dict(DENSE, **MOE, **LINEAR, shared_expert_intermediate_size=28) | tables | index | PADDED,
            GATED + LINEAR_CUTS + qwen,
            meshes=tuple(mesh for mesh in EXPERT_MESHES if "tp=8" not in mesh),
            refused=dict(FEW_EXPERTS, **{"tp=6": "E0214"}),
            stacked=stacked,
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


def images():
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
