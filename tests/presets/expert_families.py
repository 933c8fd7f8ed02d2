"""Language models with experts. See family_parts.py."""

from family_parts import (
    ATTENTION,
    CHOOSING,
    DENSE,
    DIVIDED,
    EXPERTS,
    EXPERT_FFN,
    EXPERT_MESHES,
    FEW_EXPERTS,
    FURTHER_CUTS,
    GRANITE,
    H,
    HEADS,
    HIDDEN,
    INDEXER,
    K,
    KV,
    LATENT,
    LATENT_CUTS,
    LATENT_MESHES,
    LAYERNORMS,
    LLAMA,
    LOCAL,
    MANY,
    MINIMAX,
    MOE,
    NORMS,
    PADDED,
    PER_HEAD,
    Q,
    QK_NORM,
    REFUSED,
    ROUTED,
    VOCAB,
    VOCABULARY,
    Family,
    next_token_layer,
)
from slicing import experts, features, in_turns, kv_rows, on_every_device, q_rows, side_by_side, stacked_rows, whole


def plain():
    mixtral = (
        LLAMA
        + [
            (r".*layers\.\d+\.(block_sparse_moe|mlp)\.gate\.weight", whole, whole),
            (r".*layers\.\d+\.block_sparse_moe\.experts\.\d+\.w[13]\.weight", features, whole),
            (r".*layers\.\d+\.block_sparse_moe\.experts\.\d+\.w2\.weight", whole, features),
        ]
        + ROUTED[2:4]
    )
    for name, stacked in (("mixtral", False), ("mixtral_stacked", True)):
        yield Family(
            name,
            "mixtral",
            "MixtralForCausalLM",
            "MixtralConfig",
            dict(DENSE, num_local_experts=EXPERTS),
            mixtral,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
        )
    # PhimoeExperts is MixtralExperts; PhimoeAttention is LlamaAttention
    for name, stacked in (("phimoe", False), ("phimoe_stacked", True)):
        yield Family(
            name,
            "phimoe",
            "PhimoeForCausalLM",
            "PhimoeConfig",
            dict(DIVIDED, num_local_experts=EXPERTS, attention_bias=True, lm_head_bias=True, pad_token_id=0),
            mixtral + [(r"lm_head\.bias", features), (r".*layers\.\d+\.mlp\.router\.weight", whole, whole)],
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
            reduced=(r".*o_proj\.bias",),
        )
    qwen2 = dict(DIVIDED, **MOE, shared_expert_intermediate_size=28)
    for name, stacked in (("qwen2_moe", False), ("qwen2_moe_stacked", True)):
        yield Family(
            name,
            "qwen2_moe",
            "Qwen2MoeForCausalLM",
            "Qwen2MoeConfig",
            qwen2,
            LLAMA + ROUTED,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
        )
    for name, stacked in (("qwen3_moe", False), ("qwen3_moe_stacked", True)):
        yield Family(
            name,
            "qwen3_moe",
            "Qwen3MoeForCausalLM",
            "Qwen3MoeConfig",
            dict(DENSE, **MOE, mlp_only_layers=[0], decoder_sparse_step=1),
            LLAMA + QK_NORM + ROUTED,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
        )
    yield from latent_attention()
    # DbrxExpertGLU: w1, v1 and w2 are (experts * ffn, hidden), each viewed as (experts, ffn, hidden)
    yield Family(
        "dbrx",
        "dbrx",
        "DbrxForCausalLM",
        "DbrxConfig",
        dict(
            d_model=HIDDEN,
            n_heads=HEADS,
            n_layers=2,
            max_seq_len=64,
            vocab_size=VOCAB,
            attn_config=dict(kv_n_heads=KV, clip_qkv=8),
            ffn_config=dict(ffn_hidden_size=EXPERT_FFN, moe_num_experts=EXPERTS, moe_top_k=2),
        ),
        VOCABULARY
        + [
            (r".*blocks\.\d+\.norm_attn_norm\.attn\.Wqkv\.weight", side_by_side((48, Q), (24, K), (24, K)), whole),
            (r".*blocks\.\d+\.norm_attn_norm\.attn\.out_proj\.weight", whole, Q),
            (r".*blocks\.\d+\.norm_attn_norm\.norm_[12]\.weight", whole),
            (r".*blocks\.\d+\.ffn\.router\.layer\.weight", whole, whole),
            (r".*blocks\.\d+\.ffn\.experts\.mlp\.(w1|v1|w2)", stacked_rows(EXPERTS), whole),
            (r"transformer\.norm_f\.weight", whole),
        ],
        meshes=EXPERT_MESHES,
        refused=REFUSED,
    )
    # GptOssExperts._apply_gate: gate_up[..., ::2], gate_up[..., 1::2]; weights are [experts, in, out]
    yield Family(
        "gpt_oss",
        "gpt_oss",
        "GptOssForCausalLM",
        "GptOssConfig",
        dict(DENSE, intermediate_size=EXPERT_FFN, num_local_experts=EXPERTS, num_experts_per_tok=2),
        VOCABULARY
        + ATTENTION
        + NORMS
        + [
            (r".*layers\.\d+\.self_attn\.sinks", Q),
            (r".*layers\.\d+\.mlp\.router\.weight", whole, whole),
            (r".*layers\.\d+\.mlp\.router\.bias", whole),
            (r".*layers\.\d+\.mlp\.experts\.gate_up_proj", experts, whole, in_turns),
            (r".*layers\.\d+\.mlp\.experts\.gate_up_proj_bias", experts, in_turns),
            (r".*layers\.\d+\.mlp\.experts\.down_proj", experts, features, whole),
            (r".*layers\.\d+\.mlp\.experts\.down_proj_bias", experts, whole),
        ],
        meshes=EXPERT_MESHES,
        refused=REFUSED,
        reduced=(r".*(o_proj\.bias|down_proj_bias)",),
    )


# A layer of DeepSeek V3 that predicts a further token, behind two layers.
FURTHER = "model.layers.2."
FURTHER_TENSORS = next_token_layer(
    "model.layers.1.",
    FURTHER,
    (FURTHER + "embed_tokens.weight", VOCAB, HIDDEN),
    (FURTHER + "shared_head.head.weight", VOCAB, HIDDEN),
    (FURTHER + "shared_head.norm.weight", HIDDEN),
    (FURTHER + "enorm.weight", HIDDEN),
    (FURTHER + "hnorm.weight", HIDDEN),
    (FURTHER + "eh_proj.weight", HIDDEN, 2 * HIDDEN),
)


def latent_attention():
    groups = dict(n_group=2, topk_group=1)
    forms = (
        ("deepseek_v2", "V2", dict(LATENT), False),
        ("deepseek_v2_lite", "V2", dict(LATENT, q_lora_rank=None), False),
        ("deepseek_v3", "V3", dict(LATENT, **groups), False),
        ("deepseek_v3_stacked", "V3", dict(LATENT, **groups), True),
    )
    for name, version, sizes, stacked in forms:
        yield Family(
            name,
            f"deepseek_{version.lower()}",
            f"Deepseek{version}ForCausalLM",
            f"Deepseek{version}Config",
            sizes,
            LATENT_CUTS,
            stacked=stacked,
            **LATENT_MESHES,
        )
    yield Family(
        "deepseek_v3_published",
        "deepseek_v3",
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        dict(LATENT, **groups),
        LATENT_CUTS,
        layers={"": 3},
        published=FURTHER_TENSORS,
        **LATENT_MESHES,
    )
    for name, preset, model, sizes in (
        ("deepseek_v32", "deepseek_v32", "DeepseekV32", dict(LATENT, **groups, **INDEXER)),
        ("glm_moe_dsa", "deepseek_v32", "GlmMoeDsa", dict(LATENT, **groups, **INDEXER)),
        ("glm4_moe_lite", "deepseek_v3", "Glm4MoeLite", dict(LATENT, **groups, pad_token_id=0)),
    ):
        yield Family(
            name, preset, f"{model}ForCausalLM", f"{model}Config", sizes, LATENT_CUTS, **LATENT_MESHES
        )


GLM = LLAMA + QK_NORM + ROUTED + FURTHER_CUTS
# HunYuanMoEV1Moe.forward: shared_mlp beside the experts; Ernie4_5_MoeStatics: one group of experts
HUNYUAN = [
    (r".*mlp\.gate\.wg\.weight", whole, whole),
    (r".*mlp\.shared_mlp\.(gate|up)_proj\.weight", features, whole),
    (r".*mlp\.shared_mlp\.down_proj\.weight", whole, features),
]
STATICS = [(r".*moe_statics\.e_score_correction_bias", whole, whole)]
# Layers that predict further tokens, which the library omits: a dense layer after two norms and a projection.
FURTHER_BLOCK = "model.mtp_block.0."
FURTHER_OF_ERNIE = [
    (f"model.{name}.0.weight", *shape)
    for name, *shape in (
        ("mtp_emb_norm", HIDDEN),
        ("mtp_hidden_norm", HIDDEN),
        ("mtp_linear_proj", HIDDEN, 2 * HIDDEN),
    )
]
FURTHER_BLOCK_CUTS = [(pattern.replace(r"layers\.\d+", r"mtp_block\.\d+"), *axes) for pattern, *axes in LLAMA] + [
    (r".*mtp_(emb|hidden)_norm\..*", whole),
    (r".*mtp_linear_proj\..*", whole, whole),
]


def varied():
    local = dict(num_local_experts=EXPERTS, num_experts_per_tok=2, intermediate_size=EXPERT_FFN)
    minimax = DENSE | local | dict(head_dim=128, rotary_dim=64)
    glm = dict(
        moe_intermediate_size=EXPERT_FFN,
        n_routed_experts=EXPERTS,
        num_experts_per_tok=2,
        n_shared_experts=1,
        attention_bias=True,
        use_qk_norm=True,
    )
    ernie = dict(
        moe_intermediate_size=EXPERT_FFN, moe_num_experts=EXPERTS, moe_k=2, moe_layer_start_index=1, use_bias=False
    )
    dots = {key: value for key, value in glm.items() if key != "use_qk_norm"}
    further = dict(leave_out=("num_nextn_predict_layers",))
    hunyuan = dict(num_experts=EXPERTS, moe_topk=2)
    for name, preset, model, sizes, cuts, more in (
        ("glm4_moe", "glm4_moe", "Glm4Moe", DENSE | glm, GLM, further),
        ("glm4_moe_stacked", "glm4_moe", "Glm4Moe", DENSE | glm, GLM, dict(further, stacked=True)),
        (
            "glm4_moe_published",
            "glm4_moe",
            "Glm4Moe",
            DENSE | glm,
            GLM,
            dict(layers={"": 3}, published=FURTHER_TENSORS),
        ),
        ("dots1", "dots1", "Dots1", DENSE | dots, GLM, dict(reduced=(r".*o_proj\.bias",))),
        ("minimax_m2", "minimax_m2", "MiniMaxM2", minimax, LLAMA + QK_NORM + MINIMAX, {}),
        (
            "minimax_m2_stacked",
            "minimax_m2",
            "MiniMaxM2",
            minimax,
            LLAMA + QK_NORM + MINIMAX + ROUTED,
            dict(stacked=True),
        ),
        ("granitemoe", "granitemoe", "GraniteMoe", DIVIDED | local, LLAMA + GRANITE, {}),
        ("granitemoe_stacked", "granitemoe", "GraniteMoe", DIVIDED | local, LLAMA + GRANITE, dict(stacked=True)),
        (
            "granitemoeshared",
            "granitemoe",
            "GraniteMoeShared",
            DIVIDED | local | dict(shared_intermediate_size=28),
            LLAMA + GRANITE,
            {},
        ),
        ("olmoe", "olmoe", "Olmoe", DIVIDED | MOE | dict(intermediate_size=EXPERT_FFN), LLAMA + QK_NORM + ROUTED, {}),
        ("ernie4_5_moe", "ernie4_5_moe", "Ernie4_5_Moe", DIVIDED | ernie, LLAMA + ROUTED + STATICS, {}),
        (
            "ernie4_5_moe_published",
            "ernie4_5_moe",
            "Ernie4_5_Moe",
            DIVIDED | ernie,
            LLAMA + ROUTED + STATICS + FURTHER_BLOCK_CUTS,
            dict(published=next_token_layer("model.layers.0.", FURTHER_BLOCK, *FURTHER_OF_ERNIE)),
        ),
        (
            "hunyuan_v1_moe",
            "hunyuan_v1_moe",
            "HunYuanMoEV1",
            DENSE | hunyuan,
            LLAMA + LAYERNORMS + ROUTED + HUNYUAN,
            {},
        ),
    ):
        yield Family(
            name,
            preset,
            f"{model}ForCausalLM",
            f"{model}Config",
            sizes | PADDED,
            cuts,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            **more,
        )


MTP_TENSORS = [
    ("mtp.fc.weight", HIDDEN, 2 * HIDDEN),
    ("mtp.norm.weight", HIDDEN),
    ("mtp.pre_fc_norm_embedding.weight", HIDDEN),
    ("mtp.pre_fc_norm_hidden.weight", HIDDEN),
]
MTP_CUTS = [(r"mtp\.fc\.weight", whole, whole), (r"mtp\.(norm|pre_fc_norm_(embedding|hidden))\.weight", whole)]


def packed():
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


# MiMoV2FlashAttention: the layers with a window, here the second, have twice the heads of keys and values
LOCAL_Q, LOCAL_K = q_rows(HEADS, 2 * KV), kv_rows(HEADS, 2 * KV)
MIMO = [
    (r".*layers\.1\.self_attn\.q_proj\.weight", LOCAL_Q, whole),
    (r".*layers\.1\.self_attn\.[kv]_proj\.weight", LOCAL_K, whole),
    (r".*layers\.1\.self_attn\.q_proj\.bias", LOCAL_Q),
    (r".*layers\.1\.self_attn\.[kv]_proj\.bias", LOCAL_K),
    (r".*layers\.1\.self_attn\.o_proj\.weight", whole, LOCAL_Q),
    (r".*self_attn\.(attention_sink_bias|sinks)", LOCAL_Q),
    (r"model\.mtp\..*", on_every_device),
]


def two_kinds_of_heads():
    mimo = dict(
        head_dim=6,
        v_head_dim=5,
        moe_intermediate_size=EXPERT_FFN,
        n_routed_experts=EXPERTS,
        num_experts_per_tok=2,
        attention_bias=True,
        layer_types=["full_attention", "sliding_attention"],
        mlp_layer_types=["dense", "sparse"],
        pad_token_id=None,
    )
    further = next_token_layer("model.layers.0.", "model.mtp.layers.0.", ("model.mtp.layers.0.eh_proj.weight", HIDDEN, 2 * HIDDEN))
    for name, stacked, published in (("mimo_v2_flash", False, further), ("mimo_v2_flash_stacked", True, None)):
        yield Family(
            name,
            "mimo_v2_flash",
            "MiMoV2FlashForCausalLM",
            "MiMoV2FlashConfig",
            DENSE | mimo,
            LLAMA + ROUTED + CHOOSING + MIMO,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
            published=published,
        )


# HYV3MoE and AfmoeSparseMoeBlock: a correction beside the router, shared experts that are one MLP
PUBLISHED_HYV3 = [
    (r".*layers\.\d+\.mlp\.router\.gate\.weight", whole, whole),
    (r".*layers\.\d+\.mlp\.expert_bias", whole),
    (r".*layers\.\d+\.mlp\.shared_mlp\.(gate|up)_proj\.weight", features, whole),
    (r".*layers\.\d+\.mlp\.shared_mlp\.down_proj\.weight", whole, features),
]
# AfmoeAttention.forward: o_proj(output * sigmoid(gate_proj(x)))
AFMOE = [(r".*self_attn\.gate_proj\.weight", Q, whole)]


def with_corrected_routers():
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


def with_indexers():
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


# DeepseekV4Attention: 8 groups of 2 heads, each with a projection of its own (DeepseekV4GroupedLinear)
HEAD_GROUPS, GROUP_HEADS, GROUP_RANK, STREAMS = 8, 2, 6, 4
HEAD_GROUP_ROWS = q_rows(HEAD_GROUPS, HEAD_GROUPS)
COMPRESSED = [
    (r"(model\.embed_tokens|head)\.weight", features, whole),
    (r"model\.norm\.weight", whole),
    (r".*hc_head.*", on_every_device),
    (r".*\b(attn|ffn)_norm\.weight", whole),
    (r".*\.attn\.(q_norm|kv_norm|norm)\.weight", whole),
    (r".*\.attn\.(wq_a|wkv)\.weight", whole, whole),
    (r".*\.attn\.(wq_b|wo_a)\.weight", HEAD_GROUP_ROWS, whole),
    (r".*\.attn\.wo_b\.weight", whole, HEAD_GROUP_ROWS),
    (r".*\.attn\.attn_sink", HEAD_GROUP_ROWS),
    (r".*\.attn\.(indexer|compressor)\..*", on_every_device),
    (r".*\.hc_(attn|ffn)_(fn|base|scale)", on_every_device),
    (r".*\.ffn\.gate\.(weight|bias|tid2eid)", on_every_device),
    (r".*\.ffn\.(experts\.\d+|shared_experts)\.w[13]\.weight", features, whole),
    (r".*\.ffn\.(experts\.\d+|shared_experts)\.w2\.weight", whole, features),
    (r"mtp\.0\.([eh]_proj|[eh]norm|norm)\.weight", on_every_device),
]


def compressing():
    sizes = dict(
        num_hidden_layers=3,
        hidden_size=HIDDEN,
        moe_intermediate_size=EXPERT_FFN,
        num_attention_heads=HEAD_GROUPS * GROUP_HEADS,
        head_dim=8,
        q_lora_rank=10,
        n_routed_experts=EXPERTS,
        num_experts_per_tok=2,
        vocab_size=101,
        compress_ratios=[0, 4, 128],
        num_hash_layers=1,
        qk_rope_head_dim=4,
        o_groups=HEAD_GROUPS,
        o_lora_rank=GROUP_RANK,
        index_n_heads=4,
        index_head_dim=4,
        index_topk=3,
        sliding_window=8,
        hc_mult=STREAMS,
    )
    square = HIDDEN, HIDDEN
    outer = [("e_proj.weight", *square), ("h_proj.weight", *square)]
    outer += [(f"{name}.weight", HIDDEN) for name in ("enorm", "hnorm", "norm")]
    outer += [("hc_head_fn", STREAMS, STREAMS * HIDDEN), ("hc_head_base", STREAMS), ("hc_head_scale", 1), ("ffn.gate.bias", EXPERTS)]

    def further(tensors):
        layer = next_token_layer("model.layers.0.", "mtp.0.", *[("mtp.0." + name, *shape) for name, *shape in outer])
        # The library saves the norm of the keys under a name that it does not read.
        return [
            [name.replace("attn.norm", "attn.kv_norm"), *rest] for name, *rest in layer(tensors) if "tid2eid" not in name
        ]

    yield Family(
        "deepseek_v4",
        "deepseek_v4",
        "DeepseekV4ForCausalLM",
        "DeepseekV4Config",
        sizes | PADDED,
        COMPRESSED,
        meshes=EXPERT_MESHES,
        refused=PER_HEAD | FEW_EXPERTS,
        layers={"": 3},
        published=further,
    )
