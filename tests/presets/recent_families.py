"""The families of 2025 and 2026, most of them variations of older ones. See families.py."""

from default_families import MESHES, TOWER as WIDE_TOWER, with_heads
from expert_families import (
    EXPERT_FFN,
    EXPERTS,
    FURTHER_CUTS,
    FURTHER_TENSORS,
    GROUPS,
    MOE,
    REFUSED,
    ROUTED,
    SSM_DIM,
    STATE,
    TOWER,
    VISION_REDUCED,
    mamba_cuts,
    next_token_layer,
    vision_tower,
)
from families import (
    ATTENTION,
    DENSE,
    DIVIDED,
    EXPERT_MESHES,
    FEW_EXPERTS,
    GROUPED,
    HEADS,
    HIDDEN,
    LEGAL,
    LLAMA,
    MLP,
    NORMS,
    QK_NORM,
    VOCABULARY,
    Family,
    H,
)
from slicing import experts, features, kv_rows, q_rows, two_halves, whole

PADDED = dict(pad_token_id=0)  # the class's own padding token is outside of 101 rows
LAYERNORMS = [(r".*self_attn\.(query|key)_layernorm\.weight", whole)]
MLP_BIASES = [(r".*mlp\.(gate|up)_proj\.bias", features), (r".*mlp\.down_proj\.bias", whole)]


def dense():
    """Llama's tensors, with norms and biases of their own."""
    # Glm4MLP is Phi3MLP: gate_up_proj(x).chunk(2)
    glm = VOCABULARY + ATTENTION + NORMS
    glm += [(r".*mlp\.gate_up_proj\.weight", two_halves, whole), (r".*mlp\.down_proj\.weight", whole, features)]
    biased = dict(attention_bias=True)
    reduced = (r".*(o_proj|down_proj)\.bias",)
    no_window = dict(sliding_window=None, sliding_window_pattern=None, layer_types=["full_attention"] * 2)
    for name, preset, model, sizes, cuts, added in (
        ("glm", "glm4", "Glm", biased, glm, ()),
        ("glm4", "glm4", "Glm4", biased, glm, ()),
        ("granite", "granite", "Granite", biased | dict(mlp_bias=True), LLAMA + MLP_BIASES, reduced),
        ("smollm3", "smollm3", "SmolLM3", {}, LLAMA, ()),
        ("ministral", "mistral", "Ministral", {}, LLAMA, ()),
        ("ministral3", "mistral", "Ministral3", {}, LLAMA, ()),
        ("arcee", "arcee", "Arcee", biased | dict(mlp_bias=True), LLAMA + MLP_BIASES, reduced),
        ("nemotron", "nemotron", "Nemotron", biased | dict(mlp_bias=True), LLAMA + MLP_BIASES, reduced),
        ("seed_oss", "seed_oss", "SeedOss", biased | dict(attention_out_bias=True), LLAMA, reduced),
        ("ernie4_5", "ernie4_5", "Ernie4_5", dict(use_bias=True), LLAMA + MLP_BIASES, reduced),
        ("exaone4", "exaone4", "Exaone4", no_window, LLAMA + QK_NORM, ()),
        ("hunyuan_v1_dense", "hunyuan_v1_dense", "HunYuanDenseV1", {}, LLAMA + LAYERNORMS, ()),
    ):
        # A few of the classes have no head_dim, and what they are given they keep.
        base = DIVIDED if name in ("granite", "smollm3") else DENSE
        sizes = base | PADDED | sizes
        yield Family(name, preset, f"{model}ForCausalLM", f"{model}Config", sizes, cuts, reduced=added)


    # Gemma3nTextModel.get_per_layer_inputs: a table beside embed_tokens, viewed as (layers, hidden_size_per_layer_input)
    streams = [
        (r"model\.embed_tokens_per_layer\.weight", features, whole),
        (r"model\.per_layer_model_projection\.weight", whole, whole),
        (r"model\.altup_(un)?(embed_)?projections\.\d+\.weight", whole, whole),
        (r".*layers\.\d+\.altup\.correct_output_scale", whole),
        (r".*layers\.\d+\.altup\.(correction_coefs|prediction_coefs|modality_router)\.weight", whole, whole),
        (r".*layers\.\d+\.(altup\.router_norm|laurel\.post_laurel_norm)\.weight", whole),
        (r".*layers\.\d+\.laurel\.linear_(left|right)\.weight", whole, whole),
        (r".*layers\.\d+\.per_layer_(input_gate|projection)\.weight", whole, whole),
        (r".*per_layer_(projection|input)_norm\.weight", whole),
    ]
    sizes = dict(
        num_hidden_layers=4,
        num_kv_shared_layers=2,
        vocab_size_per_layer_input=90,
        hidden_size_per_layer_input=10,
        altup_num_inputs=4,
        laurel_rank=7,
        layer_types=["sliding_attention", "full_attention"] * 2,
    )
    yield Family(
        "gemma3n_text",
        "gemma3n",
        "Gemma3nForCausalLM",
        "Gemma3nTextConfig",
        DENSE | PADDED | sizes,
        LLAMA + QK_NORM + streams,
        layers={"": 4},
    )


# Gemma4TextAttention.__init__: heads of another size, and fewer KV heads, where the layer has no window
GLOBAL_KV = 2
GLOBAL_LAYERS = [
    (r".*layers\.[13]\.self_attn\.q_proj\.weight", q_rows(HEADS, GLOBAL_KV), whole),
    (r".*layers\.[13]\.self_attn\.[kv]_proj\.weight", kv_rows(HEADS, GLOBAL_KV), whole),
    (r".*layers\.[13]\.self_attn\.o_proj\.weight", whole, q_rows(HEADS, GLOBAL_KV)),
    (r".*layers\.\d+\.layer_scalar", whole),
]
# Gemma4TextModel.get_per_layer_inputs: as in Gemma 3n, without its side streams
LAYER_WORDS = [
    (r"model\.embed_tokens_per_layer\.weight", features, whole),
    (r"model\.per_layer_model_projection\.weight", whole, whole),
    (r".*layers\.\d+\.per_layer_(input_gate|projection)\.weight", whole, whole),
    (r".*per_layer_(projection|input)_norm\.weight", whole),
]
# Gemma4TextExperts.forward: linear(x, gate_up_proj[expert]).chunk(2)
BESIDE_EXPERTS = [
    (r".*layers\.\d+\.experts\.gate_up_proj", experts, two_halves, whole),
    (r".*layers\.\d+\.experts\.down_proj", experts, whole, features),
    (r".*layers\.\d+\.router\.proj\.weight", whole, whole),
    (r".*layers\.\d+\.router\.(scale|per_expert_scale)", whole),
    (r".*layers\.\d+\.(pre|post)_feedforward_layernorm_[12]\.weight", whole),
]


def two_kinds_of_heads():
    sizes = DENSE | PADDED | dict(
        num_hidden_layers=4,
        layer_types=["sliding_attention", "full_attention"] * 2,
        global_head_dim=6,
        num_global_key_value_heads=GLOBAL_KV,
        attention_k_eq_v=True,
    )
    words = dict(num_kv_shared_layers=2, vocab_size_per_layer_input=90, hidden_size_per_layer_input=10)
    moe = dict(enable_moe_block=True, num_experts=EXPERTS, top_k_experts=2, moe_intermediate_size=EXPERT_FFN)
    alone = dict(hidden_size_per_layer_input=0)
    cuts = LLAMA + QK_NORM + GLOBAL_LAYERS
    refused = dict(GROUPED, **{"tp=3": "E0214"})
    for name, more, added, meshes, not_legal in (
        ("gemma4_text", words, LAYER_WORDS, LEGAL, refused),
        ("gemma4_moe", alone | moe, BESIDE_EXPERTS, EXPERT_MESHES, refused | FEW_EXPERTS),
    ):
        yield Family(
            name,
            "gemma4",
            "Gemma4ForCausalLM",
            "Gemma4TextConfig",
            sizes | more,
            cuts + added,
            meshes=tuple(mesh for mesh in meshes if mesh != "tp=3"),
            refused=not_legal,
            layers={"": 4},
        )
    yield Family(
        "gemma4_unified_text",
        "gemma4_unified",
        "Gemma4UnifiedForCausalLM",
        "Gemma4UnifiedTextConfig",
        sizes,
        cuts,
        meshes=tuple(mesh for mesh in LEGAL if mesh != "tp=3"),
        refused=refused,
        layers={"": 4},
    )


# GraniteMoeExperts is MixtralExperts: linear(x, gate_up_proj[expert]).chunk(2); GraniteMoeSharedMLP: chunk(2)
GRANITE = [
    (r".*block_sparse_moe\.router\.(layer\.)?weight", whole, whole),
    (r".*block_sparse_moe\.(input_linear\.weight|experts\.gate_up_proj)", experts, two_halves, whole),
    (r".*block_sparse_moe\.(output_linear\.weight|experts\.down_proj)", experts, whole, features),
    (r".*shared_mlp\.input_linear\.weight", two_halves, whole),
    (r".*shared_mlp\.output_linear\.weight", whole, features),
]
MINIMAX = [
    (r".*block_sparse_moe\.gate\.weight", whole, whole),
    (r".*(block_sparse_moe|mlp)\.e_score_correction_bias", whole),
    (r".*block_sparse_moe\.experts\.\d+\.w[13]\.weight", features, whole),
    (r".*block_sparse_moe\.experts\.\d+\.w2\.weight", whole, features),
]
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


def mixtures():
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


MAMBA = dict(
    mamba_n_heads=HEADS,
    mamba_n_groups=GROUPS,
    mamba_d_state=STATE,
    mamba_d_head=SSM_DIM,
    mamba_expand=1,
    mamba_proj_bias=True,
)


def hybrids():
    """GraniteMoeHybridMambaLayer takes its input apart as Mamba2Mixer does; every layer has a shared MLP."""
    sizes = DIVIDED | MAMBA | dict(
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
    inner = {key: value for key, value in MAMBA.items() if key != "mamba_expand"}
    for name, model, mamba in (
        ("bamba", "Bamba", dict(MAMBA, attn_layer_indices=[1])),
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


# Qwen3VLMoeTextExperts is handed them transposed, and its chunk(2) is of the outputs.
TRANSPOSED = [
    (r".*mlp\.experts\.gate_up_proj", experts, whole, two_halves),
    (r".*mlp\.experts\.down_proj", experts, features, whole),
]


TOWER_OF_PIXTRAL = r".*vision_tower\.transformer\.layers\.\d+\."
# PixtralAttentionLayer: q, k, v and o, a gated MLP, no biases
PIXTRAL = [
    (TOWER_OF_PIXTRAL + r"attention\.[qkv]_proj\.weight", H, whole),
    (TOWER_OF_PIXTRAL + r"attention\.o_proj\.weight", whole, H),
    (TOWER_OF_PIXTRAL + r"feed_forward\.(gate|up)_proj\.weight", features, whole),
    (TOWER_OF_PIXTRAL + r"feed_forward\.down_proj\.weight", whole, features),
    (TOWER_OF_PIXTRAL + r"(attention|ffn)_norm\.weight", whole),
    (r".*vision_tower\.ln_pre\.weight", whole),
    (r".*vision_tower\.patch_conv\.weight", whole, whole, whole, whole),
    (r".*multi_modal_projector\.(norm\.weight|linear_[12]\.bias)", whole),
    (r".*multi_modal_projector\.(linear_[12]|patch_merger\.merging_layer)\.weight", whole, whole),
]
PIXTRAL_CONFIG = dict(
    model_type="pixtral",
    hidden_size=16,
    intermediate_size=76,
    num_hidden_layers=2,
    num_attention_heads=HEADS,
    head_dim=2,
)


def mistral3():
    """Mistral, and Pixtral's tower."""
    for name, text in (("mistral3", "mistral"), ("mistral3_ministral3", "ministral3")):
        sizes = dict(text_config=dict(DENSE, model_type=text), vision_config=PIXTRAL_CONFIG)
        model = "Mistral3ForConditionalGeneration"
        yield Family(name, "mistral3", model, "Mistral3Config", sizes, LLAMA + PIXTRAL, reduced=())


def multimodal():
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
