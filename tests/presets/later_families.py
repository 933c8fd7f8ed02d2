"""Families that are variations of others and came last. See families.py."""

from expert_families import (
    EXPERT_FFN,
    EXPERTS,
    GATED,
    INDEXER,
    LATENT,
    LATENT_CUTS,
    LATENT_MESHES,
    LINEAR,
    LINEAR_CUTS,
    MOE,
    REFUSED,
    ROUTED,
)
from families import (
    DENSE,
    DIVIDED,
    EXPERT_MESHES,
    FEW_EXPERTS,
    FFN,
    HEADS,
    HIDDEN,
    KV,
    LLAMA,
    NORMS,
    PER_HEAD,
    QK_NORM,
    VOCAB,
    VOCABULARY,
    Family,
    H,
    K,
    Q,
)
from further_families import CHOOSING
from recent_families import MINIMAX, MLP_BIASES, PADDED
from slicing import experts, features, kv_rows, on_every_device, q_rows, side_by_side, two_halves, whole

LOCAL = dict(layer_types=["sliding_attention", "full_attention"])
# HYV3MoE and AfmoeSparseMoeBlock: a correction beside the router, shared experts that are one MLP
PUBLISHED_HYV3 = [
    (r".*layers\.\d+\.mlp\.router\.gate\.weight", whole, whole),
    (r".*layers\.\d+\.mlp\.expert_bias", whole),
    (r".*layers\.\d+\.mlp\.shared_mlp\.(gate|up)_proj\.weight", features, whole),
    (r".*layers\.\d+\.mlp\.shared_mlp\.down_proj\.weight", whole, features),
]
# AfmoeAttention.forward: o_proj(output * sigmoid(gate_proj(x)))
AFMOE = [(r".*self_attn\.gate_proj\.weight", Q, whole)]
# NanoChatMLP is CLIPMLP; GraniteSWAAttention: a sink for each head
OTHER_DENSE = [
    (r".*mlp\.fc1\.weight", features, whole),
    (r".*mlp\.fc2\.weight", whole, features),
    (r".*self_attn\.sinks", Q),
]
DENSE_LATENT = {key: value for key, value in LATENT.items() if "expert" not in key and key != "first_k_dense_replace"}


def dense():
    biased = dict(attention_bias=True, mlp_bias=True)
    reduced = (r".*(o_proj|down_proj)\.bias",)
    for name, preset, model, config, sizes in (
        ("internlm3", "llama", "Llama", "InternLM3", DENSE | biased),
        ("iquestcoder", "llama", "Llama", "IQuestCoder", DENSE),
        ("cwm", "cwm", "Cwm", "Cwm", DENSE | LOCAL),
        ("jais2", "jais2", "Jais2", "Jais2", DENSE),
        ("helium", "helium", "Helium", "Helium", DIVIDED | biased | dict(head_dim=6)),
        ("vaultgemma", "vaultgemma", "VaultGemma", "VaultGemma", DENSE),
        ("hyperclovax", "hyperclovax", "HyperCLOVAX", "HyperCLOVAX", DENSE | biased),
        ("nanochat", "nanochat", "NanoChat", "NanoChat", DIVIDED),
        ("granite_swa", "granite_swa", "GraniteSWA", "GraniteSWA", DIVIDED | biased | LOCAL),
    ):
        cuts = LLAMA + OTHER_DENSE + MLP_BIASES + [(r".*layers\.\d+\.post_norm[12]\.weight", whole)]
        model, config = f"{model}ForCausalLM", f"{config}Config"
        yield Family(name, preset, model, config, sizes | PADDED, cuts, reduced=reduced)
    for name, preset, model in (("minicpm3", "minicpm3", "MiniCPM3"), ("youtu", "deepseek_v3", "Youtu")):
        sizes = DENSE_LATENT | PADDED
        yield Family(name, preset, f"{model}ForCausalLM", f"{model}Config", sizes, LATENT_CUTS, refused=PER_HEAD)


def mixtures():
    shared = MOE | dict(num_shared_experts=2)
    solar = dict(moe_intermediate_size=EXPERT_FFN, n_routed_experts=EXPERTS, num_experts_per_tok=2, n_shared_experts=2)
    olmo = dict(num_experts=EXPERTS, num_experts_per_tok=2, intermediate_size=EXPERT_FFN)
    cohere = olmo | LOCAL | dict(num_shared_experts=2, prefix_dense_intermediate_size=28, first_k_dense_replace=1)
    routed = LLAMA + QK_NORM + ROUTED + CHOOSING + PUBLISHED_HYV3
    for name, model, sizes, cuts in (
        ("hy_v3", "HYV3", DENSE | shared, routed),
        ("solar_open", "SolarOpen", DENSE | solar, routed),
        ("afmoe", "Afmoe", DENSE | shared | LOCAL | dict(num_dense_layers=1), routed + AFMOE),
        ("flex_olmo", "FlexOlmo", DIVIDED | olmo, routed),
        ("cohere2_moe", "Cohere2Moe", DENSE | cohere, routed),
    ):
        for suffix, stacked in (("", False), ("_stacked", True)):
            yield Family(
                name + suffix,
                name,
                f"{model}ForCausalLM",
                f"{model}Config",
                sizes | PADDED,
                cuts,
                meshes=EXPERT_MESHES,
                refused=REFUSED,
                stacked=stacked,
            )


# OlmoHybridGatedDeltaNet, here the first layer: twice as many heads of values as of keys
OLMO_DELTA = [
    (r".*linear_attn\.[qk]_proj\.weight", K, whole),
    (r".*linear_attn\.[vgab]_proj\.weight", Q, whole),
    (r".*linear_attn\.[qk]_conv1d\.weight", K, whole, whole),
    (r".*linear_attn\.v_conv1d\.weight", Q, whole, whole),
    (r".*linear_attn\.conv1d\.weight", side_by_side((40, K), (40, K), (40, Q)), whole, whole),
    (r".*linear_attn\.(A_log|dt_bias)", Q),
    (r".*linear_attn\.o_norm\.weight", whole),
    (r".*linear_attn\.o_proj\.weight", whole, Q),
]
# BailingHybridDeltaAttention, here the first layer, and the gate of each head of BailingHybridAttention
LING = [
    (r".*\.word_embeddings\.weight", features, whole),
    (r".*(attention|self_attn)\.kv_a_layernorm\.weight", whole),
    (r".*(attention|self_attn)\.kv_a_proj_with_mqa\.weight", whole, whole),
    (r".*(attention|self_attn)\.([qkvbg]_proj|forget_gate\.f_proj|f_proj|kv_b_proj)\.weight", H, whole),
    (r".*(attention|self_attn)\.[qkv]_conv1d\.weight", H, whole, whole),
    (r".*(attention|self_attn)\.conv1d\.weight", side_by_side((40, H), (40, H), (40, H)), whole, whole),
    (r".*(attention|self_attn)\.(forget_gate\.)?(A_log|dt_bias)", H),
    (r".*(attention|self_attn)\.o_norm\.weight", whole),
    (r".*(attention\.dense|self_attn\.o_proj)\.weight", whole, H),
    (r".*mlp\.gate\.expert_bias", whole),
]
# LongcatFlashDecoderLayer: two attentions, two MLPs and four norms
LONGCAT = [
    (pattern.replace(r"self_attn\.", r"self_attn\.[01]\."), *axes)
    for pattern, *axes in LATENT_CUTS
    if r"self_attn\." in pattern
] + [
    (r".*mlps\.[01]\.(gate|up)_proj\.weight", features, whole),
    (r".*mlps\.[01]\.down_proj\.weight", whole, features),
    (r".*layernorm\.[01]\.weight", whole),
    (r".*mlp\.router\.classifier\.weight", whole, whole),
    (r".*mlp\.router\.e_score_correction_bias", whole),
]
# LagunaAttention: here the second layer has twice the heads of queries, of the same keys
WIDE_Q = q_rows(2 * HEADS, KV)
LAGUNA = [
    (r".*layers\.0\.self_attn\.g_proj\.weight", Q, whole),
    (r".*layers\.1\.self_attn\.[qg]_proj\.weight", WIDE_Q, whole),
    (r".*layers\.1\.self_attn\.q_proj\.bias", WIDE_Q),
    (r".*layers\.1\.self_attn\.o_proj\.weight", whole, WIDE_Q),
    (r".*mlp\.(experts|gate)\.e_score_correction_bias", whole),
]
# HYV4Attention: a gate for each feature and a sink for each head; HYV4HyperConnection: streams beside each other
HY_V4 = [
    (r".*self_attn\.(linear_gate|gate_proj)\.weight", H, whole),
    (r".*self_attn\.(learnable_sink_param|sinks)", H),
    (r".*mlp\.(shared_experts\.)?linear_gate\.weight", features, whole),
    (r".*(hc_pre|_hc|hc_head)\..*fn", whole, whole),
    (r".*(hc_pre|_hc|hc_head)\..*(base|scale)", whole),
]


def hybrids():
    linear = dict(layer_types=["linear_attention", "full_attention"])
    widths = dict(linear_num_key_heads=KV, linear_key_head_dim=10, linear_num_value_heads=HEADS)
    widths |= dict(linear_value_head_dim=5)
    for suffix, stacked in (("", False), ("_stacked", True)):
        yield Family(
            "olmo_hybrid" + suffix,
            "olmo_hybrid",
            "OlmoHybridForCausalLM",
            "OlmoHybridConfig",
            DIVIDED | PADDED | linear | widths,
            LLAMA + QK_NORM + OLMO_DELTA,
            stacked=stacked,
        )
    ling = {key: value for key, value in LATENT.items() if key not in ("n_routed_experts", "q_lora_rank")}
    ling |= dict(num_local_experts=EXPERTS, head_dim=5, n_group=2, topk_group=1, layer_group_size=2, num_mtp_layers=0)
    for suffix, stacked in (("", False), ("_stacked", True)):
        yield Family(
            "bailing_hybrid" + suffix,
            "bailing_hybrid",
            "BailingHybridForCausalLM",
            "BailingHybridConfig",
            ling | PADDED,
            LATENT_CUTS + CHOOSING + LING,
            stacked=stacked,
            **LATENT_MESHES,
        )
    other = ("num_hidden_layers", "intermediate_size", "moe_intermediate_size", "n_shared_experts")
    other += ("num_experts_per_tok", "first_k_dense_replace")
    longcat = {key: value for key, value in LATENT.items() if key not in other}
    longcat |= dict(num_layers=2, ffn_hidden_size=FFN, expert_ffn_hidden_size=EXPERT_FFN, moe_topk=2, zero_expert_num=0)
    yield Family(
        "longcat_flash",
        "longcat_flash",
        "LongcatFlashForCausalLM",
        "LongcatFlashConfig",
        longcat | PADDED,
        VOCABULARY + NORMS + ROUTED + LONGCAT,
        **LATENT_MESHES,
    )
    hunyuan = {key: value for key, value in LATENT.items() if key != "first_k_dense_replace"}
    for suffix, stacked in (("", False), ("_stacked", True)):
        yield Family(
            "hy_v4" + suffix,
            "hy_v4",
            "HYV4ForCausalLM",
            "HYV4Config",
            hunyuan | INDEXER | PADDED | dict(indexer_types=["full", "shared"]),
            LATENT_CUTS + CHOOSING + HY_V4,
            stacked=stacked,
            **LATENT_MESHES,
        )
    laguna = MOE | dict(
        shared_expert_intermediate_size=28,
        num_attention_heads_per_layer=[HEADS, 2 * HEADS],
        layer_types=["full_attention", "sliding_attention"],
        attention_bias=True,
    )
    for suffix, gating, stacked in (("", "per-head", False), ("_stacked", "per-element", True)):
        yield Family(
            "laguna" + suffix,
            "laguna",
            "LagunaForCausalLM",
            "LagunaConfig",
            DENSE | PADDED | laguna | dict(gating=gating),
            LLAMA + QK_NORM + ROUTED + LAGUNA,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
            reduced=(r".*o_proj\.bias",),
        )


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


def without_graphs():
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
