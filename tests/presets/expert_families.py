"""The families with experts, state spaces and vision towers. See families.py."""

from families import (
    ATTENTION,
    DENSE,
    DIVIDED,
    EXPERT_MESHES,
    FEW_EXPERTS,
    FFN,
    GROUPED,
    HEADS,
    HEAD_DIM,
    HIDDEN,
    KV,
    LLAMA,
    MLP,
    NORMS,
    PER_HEAD,
    QK_NORM,
    VOCAB,
    VOCABULARY,
    Family,
    H,
    K,
    Q,
    kept_groups,
)
from slicing import (
    experts,
    features,
    in_groups,
    in_turns,
    kv_rows,
    q_rows,
    query_heads,
    side_by_side,
    stacked_rows,
    two_halves,
    whole,
)

EXPERTS, EXPERT_FFN = 6, 20
MOE = dict(moe_intermediate_size=EXPERT_FFN, num_experts=EXPERTS, num_experts_per_tok=2)
REFUSED = dict(GROUPED, **FEW_EXPERTS)

ROUTED = [
    (r".*layers\.\d+\.mlp\.experts\.\d+\.(gate|up)_proj\.weight", features, whole),
    (r".*layers\.\d+\.mlp\.experts\.\d+\.down_proj\.weight", whole, features),
    # Qwen2MoeExperts.forward: linear(x, gate_up_proj[expert]).chunk(2)
    (r".*layers\.\d+\.mlp\.experts\.gate_up_proj", experts, two_halves, whole),
    (r".*layers\.\d+\.mlp\.experts\.down_proj", experts, whole, features),
    (r".*layers\.\d+\.mlp\.(gate|shared_expert_gate)\.weight", whole, whole),
    (r".*layers\.\d+\.mlp\.shared_experts?\.(gate|up)_proj\.weight", features, whole),
    (r".*layers\.\d+\.mlp\.shared_experts?\.down_proj\.weight", whole, features),
]


def next_token_layer(source, target, *outer):
    """The tensors of a layer that predicts a further token: the shapes of another layer, and some of its own."""

    def rows(tensors):
        return [
            [target + name.removeprefix(source), dtype, shape]
            for name, dtype, shape in tensors
            if name.startswith(source)
        ] + [[name, "BF16", list(shape)] for name, *shape in outer]

    return rows


def mixtures():
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


LATENT = dict(
    vocab_size=VOCAB,
    hidden_size=HIDDEN,
    intermediate_size=FFN,
    moe_intermediate_size=EXPERT_FFN,
    num_hidden_layers=2,
    num_attention_heads=HEADS,
    num_key_value_heads=HEADS,
    n_shared_experts=2,
    n_routed_experts=EXPERTS,
    kv_lora_rank=10,
    q_lora_rank=14,
    qk_rope_head_dim=2,
    qk_nope_head_dim=4,
    v_head_dim=3,
    first_k_dense_replace=1,
    num_experts_per_tok=2,
)
INDEXER = dict(index_n_heads=3, index_head_dim=4, index_topk=2)
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
FURTHER_CUTS = [
    (r".*mlp\.gate\.e_score_correction_bias", whole),
    (r".*layers\.2\.(embed_tokens|shared_head\.head)\.weight", features, whole),
    (r".*layers\.2\.(enorm|hnorm|shared_head\.norm)\.weight", whole),
    (r".*layers\.2\.eh_proj\.weight", whole, whole),
]
# DeepseekV3Attention.forward: q and kv_b as view(heads, dims), the low-rank parts for all heads.
# DeepseekV32Indexer.forward: scores are a weighted sum over all of its heads.
LATENT_CUTS = (
    VOCABULARY
    + MLP
    + NORMS
    + ROUTED
    + FURTHER_CUTS
    + [
        (r".*self_attn\.(q_a_proj|kv_a_proj_with_mqa)\.weight", whole, whole),
        (r".*self_attn\.(q_a|kv_a)_layernorm\.weight", whole),
        (r".*layers\.\d+\.self_attn\.(q_proj|q_b_proj|kv_b_proj)\.weight", H, whole),
        (r".*layers\.\d+\.self_attn\.o_proj\.weight", whole, H),
        (r".*self_attn\.indexer\.(wq_b|wk|weights_proj)\.weight", whole, whole),
        (r".*self_attn\.indexer\.k_norm\.(weight|bias)", whole),
    ]
)
LATENT_MESHES = dict(meshes=EXPERT_MESHES, refused=dict(PER_HEAD, **FEW_EXPERTS))


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


LINEAR = dict(
    linear_num_key_heads=4,
    linear_num_value_heads=8,
    linear_key_head_dim=3,
    linear_value_head_dim=5,
    linear_conv_kernel_dim=4,
    layer_types=["linear_attention", "full_attention"],
)
MTP = (
    ("mtp.fc.weight", HIDDEN, 2 * HIDDEN),
    ("mtp.norm.weight", HIDDEN),
    ("mtp.pre_fc_norm_embedding.weight", HIDDEN),
    ("mtp.pre_fc_norm_hidden.weight", HIDDEN),
)


def gated_attention(heads, kv, head_dim):
    """Qwen3NextAttention.forward: view(heads, 2 * head_dim).chunk(2)."""
    rows = in_groups(heads, (head_dim, head_dim), lambda rank: query_heads(rank, heads, kv))
    return [(r".*layers\.\d+\.self_attn\.q_proj\.weight", rows, whole)]


def linear_cuts(k_heads, v_heads, k_dim, v_dim):
    """Qwen3NextGatedDeltaNet and Qwen3_5GatedDeltaNet .forward: split([key_dim, key_dim, value_dim]); gates and z apart."""
    k, v = kv_rows(v_heads, k_heads), q_rows(v_heads, k_heads)
    qkv = side_by_side((k_heads * k_dim, k), (k_heads * k_dim, k), (v_heads * v_dim, v))
    return [
        (r"mtp\.fc\.weight", whole, whole),
        (r"mtp\.pre_fc_norm_(embedding|hidden)\.weight", whole),
        (r".*linear_attn\.conv1d\.weight", qkv, whole, whole),
        (r".*linear_attn\.(A_log|dt_bias)", v),
        (r".*linear_attn\.norm\.weight", whole),
        (r".*linear_attn\.out_proj\.weight", whole, v),
        (r".*linear_attn\.in_proj_qkv\.weight", qkv, whole),
        (r".*linear_attn\.in_proj_(z|a|b)\.weight", v, whole),
    ]


LINEAR_CUTS = gated_attention(HEADS, KV, HEAD_DIM) + linear_cuts(4, 8, 3, 5)
GATED = [cut for cut in LLAMA + QK_NORM + ROUTED if "q_proj" not in cut[0]]
TOWER = dict(depth=2, hidden_size=24, intermediate_size=36, num_heads=6, patch_size=2, out_hidden_size=HIDDEN)


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


MERGER = r".*visual\.(merger|deepstack_merger_list\.\d+)\."
VISION_REDUCED = (
    r".*visual\.blocks\.\d+\.(attn\.proj|mlp\.fc2|mlp\.down_proj|mlp\.linear_fc2)\.bias",
    r".*visual\.(merger|deepstack_merger_list\.\d+)\.(mlp\.2|linear_fc2)\.bias",
)


def vision_tower(heads, width=24):
    """VisionAttention.forward: qkv(x).reshape(sequence, 3, heads, -1)."""
    v = q_rows(heads, heads)
    qkv = side_by_side((width, v), (width, v), (width, v))
    block, up, down = (
        r".*visual\.blocks\.\d+\.",
        r"(mlp\.fc1|mlp\.linear_fc1|mlp\.gate_proj|mlp\.up_proj)",
        r"(mlp\.fc2|mlp\.linear_fc2|mlp\.down_proj)",
    )
    return [
        (block + r"attn\.qkv\.weight", qkv, whole),
        (block + r"attn\.qkv\.bias", qkv),
        (block + r"attn\.proj\.weight", whole, v),
        (block + r"attn\.proj\.bias", whole),
        (block + up + r"\.weight", features, whole),
        (block + up + r"\.bias", features),
        (block + down + r"\.weight", whole, features),
        (block + down + r"\.bias", whole),
        (block + r"norm[12]\.(weight|bias)", whole),
        (MERGER + r"(mlp\.0|linear_fc1)\.weight", features, whole),
        (MERGER + r"(mlp\.0|linear_fc1)\.bias", features),
        (MERGER + r"(mlp\.2|linear_fc2)\.weight", whole, features),
        (MERGER + r"(mlp\.2|linear_fc2)\.bias", whole),
        (MERGER + r"(ln_q|norm)\.(weight|bias)", whole),
        (r".*visual\.patch_embed\.proj\.weight", whole, whole, whole, whole, whole),
        (r".*visual\.patch_embed\.proj\.bias", whole),
        (r".*visual\.pos_embed\.weight", whole, whole),
    ]


def encoder_layers(prefix, out, heads):
    """Llama4VisionAttention and SiglipAttention .forward: q, k and v apart, view(heads, -1)."""
    v, layer = q_rows(heads, heads), prefix + r"layers\.\d+\."
    return [
        (layer + r"self_attn\.[qkv]_proj\.weight", v, whole),
        (layer + r"self_attn\.[qkv]_proj\.bias", v),
        (layer + rf"self_attn\.{out}\.weight", whole, v),
        (layer + rf"self_attn\.{out}\.bias", whole),
        (layer + r"mlp\.fc1\.weight", features, whole),
        (layer + r"mlp\.fc1\.bias", features),
        (layer + r"mlp\.fc2\.weight", whole, features),
        (layer + r"mlp\.fc2\.bias", whole),
        (layer + r"[a-z_]*norm[12]?\.(weight|bias)", whole),
    ]


FEED = r".*layers\.\d+\.feed_forward\."
LLAMA4_TEXT = dict(
    DENSE,
    intermediate_size=EXPERT_FFN,
    intermediate_size_mlp=FFN,
    num_local_experts=EXPERTS,
    interleave_moe_layer_step=2,
)
# Llama4TextExperts.forward: bmm(x, gate_up_proj).chunk(2, dim=-1); weights are [experts, in, out]
LLAMA4 = LLAMA + [
    (FEED + r"(shared_expert\.)?(gate|up)_proj\.weight", features, whole),
    (FEED + r"(shared_expert\.)?down_proj\.weight", whole, features),
    (FEED + r"router\.weight", whole, whole),
    (FEED + r"experts\.gate_up_proj", experts, whole, two_halves),
    (FEED + r"experts\.down_proj", experts, features, whole),
]


def llama4_vision(heads):
    sight = r"(model\.)?vision_model\."
    return encoder_layers(sight + r"model\.", "o_proj", heads) + [
        (sight + r"vision_adapter\.mlp\.fc1\.weight", features, whole),
        (sight + r"vision_adapter\.mlp\.fc2\.weight", whole, features),
        (sight + r"layernorm_(pre|post)\.(weight|bias)", whole),
        (sight + r"class_embedding", whole),
        (sight + r"(positional_embedding_vlm|patch_embedding\.linear\.weight)", whole, whole),
        (r"(model\.)?multi_modal_projector\.linear_1\.weight", whole, whole),
    ]


LLAMA4_REDUCED = (r".*vision_model\.model.*(o_proj|fc2)\.bias",)


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


def multimodal():
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
