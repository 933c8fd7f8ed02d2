"""Language models with state spaces, convolutions or linear attention, alone or beside attention. See family_parts.py."""

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
    GRANITE,
    GROUPED,
    H,
    HEADS,
    HIDDEN,
    INDEXER,
    K,
    KV,
    LATENT,
    LATENT_CUTS,
    LATENT_MESHES,
    LEGAL,
    LINEAR,
    LINEAR_CUTS,
    LLAMA,
    MLP,
    MLP_BIASES,
    MOE,
    NORMS,
    PADDED,
    Q,
    QK_NORM,
    REFUSED,
    ROUTED,
    TOWER,
    VISION_REDUCED,
    VOCAB,
    VOCABULARY,
    Family,
    kept_groups,
    next_token_layer,
    vision_tower,
)
from slicing import experts, features, in_groups, kv_rows, q_rows, side_by_side, two_halves, whole


GROUPS, STATE, SSM_DIM, INNER = 4, 5, 6, 48
MIXER = r"(backbone|model|mtp)\.layers\.\d+\.(mixer|mamba)\."


def mamba_cuts():
    """Mamba2Mixer.forward: split([intermediate, conv_dim, heads]), then split([intermediate, groups * state, the same]);
    a head reads the B and C of group head // (heads / groups)."""
    x, groups = q_rows(HEADS, GROUPS), kv_rows(HEADS, GROUPS)
    xbc = ((INNER, x), (GROUPS * STATE, groups), (GROUPS * STATE, groups))
    mixer = MIXER
    return [
        (mixer + r"in_proj\.weight", side_by_side((INNER, x), *xbc, (HEADS, x)), whole),
        (mixer + r"in_proj\.bias", side_by_side((INNER, x), *xbc, (HEADS, x))),
        (mixer + r"conv1d\.weight", side_by_side(*xbc), whole, whole),
        (mixer + r"conv1d\.bias", side_by_side(*xbc)),
        (mixer + r"(A_log|D|dt_bias)", x),
        (mixer + r"norm\.weight", x),
        (mixer + r"out_proj\.weight", whole, x),
        (mixer + r"out_proj\.bias", whole),
    ]


def state_spaces():
    mixer = MIXER
    mamba = (
        VOCABULARY
        + mamba_cuts()
        + [
            (r"(backbone|model)\.layers\.\d+\.norm\.weight", whole),
            (r"(backbone|model)\.norm_f\.weight", whole),
        ]
    )
    yield Family(
        "mamba2",
        "mamba2",
        "Mamba2ForCausalLM",
        "Mamba2Config",
        dict(
            num_heads=HEADS,
            head_dim=SSM_DIM,
            vocab_size=VOCAB,
            hidden_size=24,
            state_size=STATE,
            num_hidden_layers=2,
            expand=2,
            conv_kernel=4,
            n_groups=GROUPS,
            use_bias=True,
        ),
        mamba,
        reduced=(r".*out_proj\.bias",),
    )
    one = q_rows(HEADS, 1)
    xbc1 = ((INNER, one), (STATE, whole), (STATE, whole))
    yield Family(
        "mamba2_one_group",
        "mamba2",
        "Mamba2ForCausalLM",
        "Mamba2Config",
        dict(
            num_heads=HEADS,
            head_dim=SSM_DIM,
            vocab_size=VOCAB,
            hidden_size=24,
            state_size=STATE,
            num_hidden_layers=2,
            expand=2,
            conv_kernel=4,
            n_groups=1,
        ),
        VOCABULARY
        + [
            (mixer + r"in_proj\.weight", side_by_side((INNER, one), *xbc1, (HEADS, one)), whole),
            (mixer + r"conv1d\.weight", side_by_side(*xbc1), whole, whole),
            (mixer + r"conv1d\.bias", side_by_side(*xbc1)),
            (mixer + r"(A_log|D|dt_bias|norm\.weight)", one),
            (mixer + r"out_proj\.weight", whole, one),
            (r"(backbone|model)\.layers\.\d+\.norm\.weight", whole),
            (r"(backbone|model)\.norm_f\.weight", whole),
        ],
        meshes=("tp=1", "tp=2", "tp=4", "tp=8", "pp=2,tp=2"),
        refused={"tp=3": "E0214"},
    )
    nemotron = mamba + [
        (mixer + r"q_proj\.weight", Q, whole),
        (mixer + r"[kv]_proj\.weight", K, whole),
        (mixer + r"o_proj\.weight", whole, Q),
        (mixer + r"(shared_experts\.)?up_proj\.weight", features, whole),
        (mixer + r"(shared_experts\.)?down_proj\.weight", whole, features),
        (mixer + r"gate\.weight", whole, whole),
        (mixer + r"gate\.e_score_correction_bias", whole),
        (mixer + r"(fc1|fc2)_latent_proj\.weight", whole, whole),
        (mixer + r"experts\.\d+\.up_proj\.weight", features, whole),
        (mixer + r"experts\.\d+\.down_proj\.weight", whole, features),
        (mixer + r"experts\.up_proj", experts, features, whole),
        (mixer + r"experts\.down_proj", experts, whole, features),
    ]
    sizes = dict(
        vocab_size=VOCAB,
        hidden_size=HIDDEN,
        intermediate_size=FFN,
        num_attention_heads=HEADS,
        num_key_value_heads=KV,
        head_dim=4,
        mamba_num_heads=HEADS,
        mamba_head_dim=SSM_DIM,
        n_groups=GROUPS,
        ssm_state_size=STATE,
        n_routed_experts=EXPERTS,
        n_shared_experts=1,
        moe_intermediate_size=EXPERT_FFN,
        moe_shared_expert_intermediate_size=28,
        layers_block_type=["mamba", "attention", "moe", "mlp"],
    )
    for name, stacked, more in (
        ("nemotron_h", False, {}),
        ("nemotron_h_latent", False, dict(moe_latent_size=12)),
        ("nemotron_h_stacked", True, {}),
    ):
        yield Family(
            name,
            "nemotron_h",
            "NemotronHForCausalLM",
            "NemotronHConfig",
            dict(sizes, **more),
            nemotron,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            layers={"": 4},
            stacked=stacked,
        )
    attention = next_token_layer(
        "backbone.layers.1.",
        "mtp.layers.0.",
        ("mtp.layers.0.eh_proj.weight", HIDDEN, 2 * HIDDEN),
        ("mtp.layers.0.enorm.weight", HIDDEN),
        ("mtp.layers.0.hnorm.weight", HIDDEN),
    )
    moe = next_token_layer("backbone.layers.2.", "mtp.layers.1.", ("mtp.layers.1.final_layernorm.weight", HIDDEN))
    yield Family(
        "nemotron_h_published",
        "nemotron_h",
        "NemotronHForCausalLM",
        "NemotronHConfig",
        dict(sizes, moe_latent_size=12),
        nemotron
        + [
            (r"mtp\.layers\.0\.eh_proj\.weight", whole, whole),
            (r"mtp\.layers\.\d\.(norm|enorm|hnorm|final_layernorm)\.weight", whole),
        ],
        meshes=EXPERT_MESHES,
        refused=REFUSED,
        layers={"": 4},
        published=lambda tensors: attention(tensors) + moe(tensors),
    )


MTP = (
    ("mtp.fc.weight", HIDDEN, 2 * HIDDEN),
    ("mtp.norm.weight", HIDDEN),
    ("mtp.pre_fc_norm_embedding.weight", HIDDEN),
    ("mtp.pre_fc_norm_hidden.weight", HIDDEN),
)


def linear_attention():
    # Qwen3NextGatedDeltaNet.fix_query_key_value_ordering: view(key heads, ...).split
    groups = kept_groups(8, 4)
    cuts = (
        GATED
        + LINEAR_CUTS
        + [
            (r".*layers\.\d+\.linear_attn\.in_proj_qkvz\.weight", in_groups(4, (3, 3, 2 * 5, 2 * 5), groups), whole),
            (r".*layers\.\d+\.linear_attn\.in_proj_ba\.weight", in_groups(4, (2, 2), groups), whole),
        ]
    )
    mtp = next_token_layer("model.layers.1.", "mtp.layers.0.", *MTP)
    for name, published in (("qwen3_next", None), ("qwen3_next_published", mtp)):
        yield Family(
            name,
            "qwen3_next",
            "Qwen3NextForCausalLM",
            "Qwen3NextConfig",
            dict(DENSE, **MOE, **LINEAR, shared_expert_intermediate_size=28),
            cuts,
            meshes=tuple(mesh for mesh in EXPERT_MESHES if "tp=8" not in mesh),
            refused=dict(FEW_EXPERTS, **{"tp=8": "E0214", "tp=6": "E0214"}),
            published=published,
        )
    cuts = GATED + LINEAR_CUTS + vision_tower(6)
    vision = dict(TOWER, num_position_embeddings=16)
    text = dict(DENSE, **LINEAR)
    few_vision_heads = dict(meshes=tuple(mesh for mesh in EXPERT_MESHES if "tp=8" not in mesh), reduced=VISION_REDUCED)
    yield Family(
        "qwen3_5",
        "qwen3_5",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5Config",
        dict(text_config=text, vision_config=vision),
        cuts,
        refused={"tp=6": "E0214", "tp=8": "E0210"},
        **few_vision_heads,
    )
    yield Family("qwen3_5_text", "qwen3_5", "Qwen3_5ForCausalLM", "Qwen3_5TextConfig", text, cuts, published=mtp)
    moe = dict(DENSE, **MOE, **LINEAR, shared_expert_intermediate_size=28)
    for name, stacked in (("qwen3_5_moe", False), ("qwen3_5_moe_stacked", True)):
        yield Family(
            name,
            "qwen3_5_moe",
            "Qwen3_5MoeForConditionalGeneration",
            "Qwen3_5MoeConfig",
            dict(text_config=moe, vision_config=vision),
            cuts,
            stacked=stacked,
            refused=dict(FEW_EXPERTS, **{"tp=6": "E0214", "tp=8": "E0210"}),
            **few_vision_heads,
            published=next_token_layer("model.language_model.layers.1.", "mtp.layers.0.", *MTP) if stacked else None,
        )


MAMBA_HEADS = dict(
    mamba_n_heads=HEADS,
    mamba_n_groups=GROUPS,
    mamba_d_state=STATE,
    mamba_d_head=SSM_DIM,
    mamba_expand=1,
    mamba_proj_bias=True,
)


def of_heads():
    """GraniteMoeHybridMambaLayer takes its input apart as Mamba2Mixer does; every layer has a shared MLP."""
    sizes = DIVIDED | MAMBA_HEADS | dict(
        num_local_experts=EXPERTS,
        num_experts_per_tok=2,
        intermediate_size=EXPERT_FFN,
        shared_intermediate_size=28,
        layer_types=["mamba", "attention"],
    )
    for name, more in (("granitemoehybrid", {}), ("granitemoehybrid_dense", dict(num_local_experts=0))):
        yield Family(
            name,
            "granitemoehybrid",
            "GraniteMoeHybridForCausalLM",
            "GraniteMoeHybridConfig",
            sizes | PADDED | more,
            LLAMA + GRANITE + mamba_cuts(),
            meshes=EXPERT_MESHES if not more else LEGAL,
            refused=REFUSED if not more else GROUPED,
            reduced=(r".*mamba\.out_proj\.bias",),
        )

    # BambaMLP and FalconH1MLP are LlamaMLP under another name.
    feed_forward = [(pattern.replace(r"mlp\.", r"feed_forward\."), *axes) for pattern, *axes in MLP + MLP_BIASES]
    biased = dict(attention_bias=True, mlp_bias=True)
    inner = {key: value for key, value in MAMBA_HEADS.items() if key != "mamba_expand"}
    for name, model, mamba in (
        ("bamba", "Bamba", dict(MAMBA_HEADS, attn_layer_indices=[1])),
        ("falcon_h1", "FalconH1", dict(inner, mamba_d_ssm=HEADS * SSM_DIM, mamba_rms_norm=True, projectors_bias=True)),
    ):
        yield Family(
            name,
            name,
            f"{model}ForCausalLM",
            f"{model}Config",
            DIVIDED | PADDED | biased | mamba,
            LLAMA + feed_forward + [(r"model\.final_layernorm\.weight", whole)] + mamba_cuts(),
            reduced=(r".*mamba\.out_proj\.bias", r".*(o_proj|down_proj)\.bias"),
        )


    # Zamba2MLP.forward: chunk(2) of the sum of gate_up_proj and its adapter; Zamba2Attention adds adapters alike
    shared = r".*shared_transformer\."
    zamba = [
        (shared + r"self_attn\.[qkv]_proj\.weight", H, whole),
        (shared + r"self_attn\.o_proj\.weight", whole, H),
        (shared + r"feed_forward\.gate_up_proj\.weight", two_halves, whole),
        (shared + r"feed_forward\.gate_up_proj\.bias", two_halves),
        (shared + r"feed_forward\.down_proj\.weight", whole, features),
        (shared + r"feed_forward\.down_proj\.bias", whole),
        (shared + r".*_adapter_list\.\d+\.0\.weight", whole, whole),
        (shared + r"self_attn\.linear_[qkv]_adapter_list\.\d+\.1\.weight", H, whole),
        (shared + r"feed_forward\.gate_up_proj_adapter_list\.\d+\.1\.weight", two_halves, whole),
        (r".*layernorm\.weight", whole),
        (r".*layers\.\d+\.linear\.weight", whole, whole),
    ]
    sizes = DIVIDED | PADDED | dict(
        num_hidden_layers=6,
        num_key_value_heads=HEADS,
        layers_block_type=["mamba", "hybrid", "mamba", "hybrid", "hybrid", "hybrid"],
        n_mamba_heads=HEADS,
        mamba_ngroups=GROUPS,
        mamba_d_state=STATE,
        mamba_expand=1,
        num_mem_blocks=2,
        use_shared_attention_adapter=True,
        adapter_rank=6,
        add_bias_linear=True,
    )
    decoder = [(pattern.replace(r"(mixer|mamba)", r"(mamba_decoder\.)?mamba"), *axes) for pattern, *axes in mamba_cuts()]
    yield Family(
        "zamba2",
        "zamba2",
        "Zamba2ForCausalLM",
        "Zamba2Config",
        sizes,
        VOCABULARY + decoder + zamba,
        layers={"": 6},
        reduced=(r".*(mamba\.out_proj|feed_forward\.down_proj)\.bias",),
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


def of_convolutions():
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


# KimiLinearDeltaAttention, here the first layer: three projections, convolutions and low-rank gates of all heads
LINEAR_HEADS = 12
DELTA = q_rows(LINEAR_HEADS, LINEAR_HEADS)
KIMI = [
    (r".*layers\.0\.self_attn\.([qkv]|[fg]_b|b)_proj\.weight", DELTA, whole),
    (r".*layers\.0\.self_attn\.[fg]_a_proj\.weight", whole, whole),
    (r".*layers\.0\.self_attn\.[qkv]_conv1d\.weight", DELTA, whole, whole),
    (r".*layers\.0\.self_attn\.dt_bias", DELTA),
    (r".*layers\.0\.self_attn\.A_log", whole, whole, DELTA, whole),
    (r".*layers\.0\.self_attn\.o_norm\.weight", whole),
    (r".*layers\.0\.self_attn\.o_proj\.weight", whole, DELTA),
    (r".*block_sparse_moe\.(shared_experts\.)?(gate|up)_proj\.weight", features, whole),
    (r".*block_sparse_moe\.(shared_experts\.)?down_proj\.weight", whole, features),
    (r".*block_sparse_moe\.experts\.\d+\.w[13]\.weight", features, whole),
    (r".*block_sparse_moe\.experts\.\d+\.w2\.weight", whole, features),
    (r".*block_sparse_moe\.gate\.weight", whole, whole),
    (r".*block_sparse_moe\.gate\.e_score_correction_bias", whole),
]


def of_latent_attention():
    kimi = dict(
        {key: value for key, value in LATENT.items() if key not in ("n_routed_experts", "first_k_dense_replace")},
        num_local_experts=EXPERTS,
        layer_types=["linear_attention", "full_attention"],
        mlp_layer_types=["dense", "sparse"],
        linear_num_heads=LINEAR_HEADS,
        linear_head_dim=5,
        pad_token_id=None,
        n_group=1,
        topk_group=1,
    )
    yield Family(
        "kimi_linear",
        "kimi_linear",
        "KimiLinearForCausalLM",
        "KimiLinearConfig",
        kimi,
        LATENT_CUTS + KIMI,
        **LATENT_MESHES,
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


def varied():
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


# Lfm3Attention: a gate for each head; norms behind
LFM3 = [
    (r".*self_attn\.(gate_proj|g_proj)\.weight", Q, whole),
    (r".*self_attn\.[qk]_norm\.weight", whole),
    (r".*post_(operator|ffn)_norm\.weight", whole),
]


def of_windows():
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
