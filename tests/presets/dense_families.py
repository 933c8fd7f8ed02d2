"""Language models whose layers are attention and an MLP. See family_parts.py."""

from family_parts import (
    ATTENTION,
    DENSE,
    DIVIDED,
    ENCODER,
    EXPERTS,
    EXPERT_FFN,
    EXPERT_MESHES,
    FEW_EXPERTS,
    FFN,
    GATED,
    GROUPED,
    H,
    HEADS,
    HIDDEN,
    K,
    KV,
    LATENT,
    LATENT_CUTS,
    LAYERNORMS,
    LEGAL,
    LLAMA,
    LLAMA4,
    LLAMA4_REDUCED,
    LLAMA4_TEXT,
    LOCAL,
    MESHES,
    MLP_BIASES,
    NORMS,
    PADDED,
    PER_HEAD,
    Q,
    QK_NORM,
    REDUCED,
    VISION_REDUCED,
    VOCAB,
    VOCABULARY,
    WIDE_TOWER,
    Family,
    gated_attention,
    kept_groups,
    linear_cuts,
    llama4_vision,
    vision_tower,
    with_biases,
    with_heads,
)
from slicing import (
    experts,
    features,
    in_groups,
    kv_rows,
    q_rows,
    query_heads,
    side_by_side,
    stacked_rows,
    two_halves,
    whole,
)


def kept_heads(heads=HEADS, kv=HEADS):
    return lambda rank: query_heads(rank, heads, kv)


def plain():
    yield Family(
        "llama",
        "llama",
        "LlamaForCausalLM",
        "LlamaConfig",
        dict(DENSE, attention_bias=True, mlp_bias=True),
        LLAMA + [(r".*mlp\.(gate|up)_proj\.bias", features), (r".*mlp\.down_proj\.bias", whole)],
        reduced=(r".*(o_proj|down_proj)\.bias",),
    )
    yield Family("llama_bare", "llama", "LlamaModel", "LlamaConfig", DENSE, LLAMA)
    yield Family("mistral", "mistral", "MistralForCausalLM", "MistralConfig", DENSE, LLAMA)
    yield Family("qwen2", "qwen2", "Qwen2ForCausalLM", "Qwen2Config", DIVIDED, LLAMA)
    yield Family("qwen3", "qwen3", "Qwen3ForCausalLM", "Qwen3Config", DENSE, LLAMA + QK_NORM)
    yield Family(
        "gemma", "gemma", "GemmaForCausalLM", "GemmaConfig", dict(DENSE, head_dim=256), LLAMA, leave_out=("head_dim",)
    )
    yield Family("gemma2", "gemma2", "Gemma2ForCausalLM", "Gemma2Config", DENSE, LLAMA)
    yield Family("gemma3_text", "gemma3", "Gemma3ForCausalLM", "Gemma3TextConfig", DENSE, LLAMA + QK_NORM)
    # Phi3Attention.forward: qkv[..., :query_pos], then KV heads x head_dim twice; Phi3MLP.forward: chunk(2)
    yield Family(
        "phi3",
        "phi3",
        "Phi3ForCausalLM",
        "Phi3Config",
        dict(DIVIDED, pad_token_id=0),
        VOCABULARY
        + ATTENTION
        + NORMS
        + [
            (r".*layers\.\d+\.self_attn\.qkv_proj\.weight", side_by_side((48, Q), (24, K), (24, K)), whole),
            (r".*layers\.\d+\.mlp\.gate_up_proj\.weight", two_halves, whole),
            (r".*layers\.\d+\.mlp\.down_proj\.weight", whole, features),
        ],
    )
    yield Family(
        "phi",
        "phi",
        "PhiForCausalLM",
        "PhiConfig",
        dict(DIVIDED, qk_layernorm=True),
        VOCABULARY
        + ATTENTION
        + NORMS
        + [
            (r"lm_head\.bias", features),
            (r".*self_attn\.dense\.weight", whole, Q),
            (r".*self_attn\.dense\.bias", whole),
            (r".*layers\.\d+\.mlp\.fc1\.weight", features, whole),
            (r".*mlp\.fc1\.bias", features),
            (r".*layers\.\d+\.mlp\.fc2\.weight", whole, features),
            (r".*mlp\.fc2\.bias", whole),
            (r".*self_attn\.[qk]_layernorm\.(weight|bias)", whole),
            (r"model\.final_layernorm\.(weight|bias)", whole),
        ],
        reduced=(r".*(plain|fc2)\.bias",),
    )
    yield Family(
        "starcoder2",
        "starcoder2",
        "Starcoder2ForCausalLM",
        "Starcoder2Config",
        DIVIDED,
        VOCABULARY
        + ATTENTION
        + NORMS
        + [
            (r".*layers\.\d+\.mlp\.c_fc\.weight", features, whole),
            (r".*mlp\.c_fc\.bias", features),
            (r".*layers\.\d+\.mlp\.c_proj\.weight", whole, features),
            (r".*mlp\.c_proj\.bias", whole),
        ],
        reduced=(r".*(o_proj|c_proj)\.bias",),
    )
    # CohereLayerNorm over (heads, head_dim): a row for each head
    yield Family(
        "cohere",
        "cohere",
        "CohereForCausalLM",
        "CohereConfig",
        dict(DIVIDED, use_qk_norm=True),
        LLAMA + [(r".*self_attn\.q_norm\.weight", Q, whole), (r".*self_attn\.k_norm\.weight", K, whole)],
    )
    yield Family("cohere2", "cohere", "Cohere2ForCausalLM", "Cohere2Config", DIVIDED, LLAMA)
    # StableLmLayerNormPerHead: a norm, and a tensor, for each head
    for name, more in (
        ("stablelm", {}),
        ("stablelm_normed", dict(use_qkv_bias=True, qk_layernorm=True, use_parallel_residual=True)),
    ):
        yield Family(
            name,
            "stablelm",
            "StableLmForCausalLM",
            "StableLmConfig",
            dict(DIVIDED, **more),
            LLAMA + [(r".*self_attn\.[qk]_layernorm\.norms\.\d+\.weight", whole)],
        )
    yield Family("olmo", "olmo", "OlmoForCausalLM", "OlmoConfig", DIVIDED, LLAMA)
    for name, model in (("olmo2", "Olmo2"), ("olmo3", "Olmo3")):
        yield Family(name, "olmo2", f"{model}ForCausalLM", f"{model}Config", DIVIDED, LLAMA + QK_NORM)


GPT_NORMS = [
    (r"(transformer\.)?(h|blocks)\.\d+\.[a-z_]*(norm|ln)[a-z_0-9]*\.(weight|bias)", whole),
    (r"(transformer\.)?(ln_f|norm_f|word_embeddings_layernorm)\.(weight|bias)", whole),
    (r"(transformer\.)?wpe\.weight", whole, whole),
]
BLOOM = (
    VOCABULARY
    + GPT_NORMS
    + [
        (r".*h\.\d+\.self_attention\.dense\.weight", whole, Q),
        (r".*h\.\d+\.self_attention\.dense\.bias", whole),
        (r".*h\.\d+\.mlp\.dense_h_to_4h\.weight", features, whole),
        (r".*mlp\.dense_h_to_4h\.bias", features),
        (r".*h\.\d+\.mlp\.dense_4h_to_h\.weight", whole, features),
        (r".*mlp\.dense_4h_to_h\.bias", whole),
    ]
)
BLOOM_REDUCED = (r".*(dense|dense_4h_to_h)\.bias",)
ONE_KV = q_rows(HEADS, 1)  # multi-query: all heads share one K and V, so that query heads go in equal runs
# one K and V for 8 query heads: only divisors of 8
ONE_KV_MESHES = ("tp=1", "tp=2", "tp=4", "tp=8", "pp=2,tp=2")
ONE_KV_REFUSED = {"tp=3": "E0214", "tp=16": "E0214"}


def with_query_rows(cuts, rows):
    return [tuple(rows if axis is Q else axis for axis in cut) for cut in cuts]


def fused():
    per_head = in_groups(HEADS, (6, 6, 6), kept_heads())
    multi_query = side_by_side((48, ONE_KV), (6, whole), (6, whole))
    small = dict(vocab_size=VOCAB, n_positions=64, n_embd=HIDDEN, n_layer=2, n_head=HEADS, n_inner=FFN)
    # GPT2Attention.forward: c_attn is a Conv1D, [in, out], split(split_size) along its output
    gpt2 = (
        VOCABULARY
        + GPT_NORMS
        + [
            (r".*h\.\d+\.attn\.c_attn\.weight", whole, side_by_side((48, H), (48, H), (48, H))),
            (r".*h\.\d+\.attn\.c_attn\.bias", side_by_side((48, H), (48, H), (48, H))),
            (r".*h\.\d+\.attn\.c_proj\.weight", H, whole),
            (r".*h\.\d+\.(attn|mlp)\.c_proj\.bias", whole),
            (r".*h\.\d+\.mlp\.c_fc\.weight", whole, features),
            (r".*h\.\d+\.mlp\.c_fc\.bias", features),
            (r".*h\.\d+\.mlp\.c_proj\.weight", features, whole),
            (r".*h\.\d+\.attn\.bias", whole, whole, whole, whole),
        ]
    )
    yield Family(
        "gpt2", "gpt2", "GPT2LMHeadModel", "GPT2Config", small, gpt2, refused=PER_HEAD, reduced=(r".*c_proj\.bias",)
    )
    yield Family(
        "gpt2_bare",
        "gpt2",
        "GPT2Model",
        "GPT2Config",
        small,
        gpt2,
        refused=PER_HEAD,
        reduced=(r".*c_proj\.bias",),
        published=lambda tensors: [[f"h.{layer}.attn.bias", "F32", [1, 1, 64, 64]] for layer in range(2)],
    )
    # GPTNeoXAttention.forward: view(heads, 3 * head_dim), chunk(3) of the last axis
    yield Family(
        "gpt_neox",
        "gpt_neox",
        "GPTNeoXForCausalLM",
        "GPTNeoXConfig",
        ENCODER,
        VOCABULARY
        + [
            (r".*layers\.\d+\.attention\.query_key_value\.weight", per_head, whole),
            (r".*layers\.\d+\.attention\.query_key_value\.bias", per_head),
            (r".*layers\.\d+\.attention\.dense\.weight", whole, H),
            (r".*layers\.\d+\.attention\.dense\.bias", whole),
            (r".*layers\.\d+\.mlp\.dense_h_to_4h\.weight", features, whole),
            (r".*mlp\.dense_h_to_4h\.bias", features),
            (r".*layers\.\d+\.mlp\.dense_4h_to_h\.weight", whole, features),
            (r".*mlp\.dense_4h_to_h\.bias", whole),
            (r".*layers\.\d+\.(input|post_attention)_layernorm\.(weight|bias)", whole),
            (r".*final_layer_norm\.(weight|bias)", whole),
        ],
        refused=PER_HEAD,
        reduced=BLOOM_REDUCED,
    )
    # GPTBigCodeAttention.forward: split((embed_dim, kv_dim, kv_dim)); without multi_query view(heads, 3 * head_dim)
    bigcode = (
        VOCABULARY
        + GPT_NORMS
        + [
            (r".*h\.\d+\.attn\.c_proj\.weight", whole, Q),
            (r".*h\.\d+\.(attn|mlp)\.c_proj\.bias", whole),
            (r".*h\.\d+\.mlp\.c_fc\.weight", features, whole),
            (r".*h\.\d+\.mlp\.c_fc\.bias", features),
            (r".*h\.\d+\.mlp\.c_proj\.weight", whole, features),
        ]
    )
    for name, fused, rows, meshes, refused in (
        ("gpt_bigcode", multi_query, ONE_KV, ONE_KV_MESHES, ONE_KV_REFUSED),
        ("gpt_bigcode_multi_head", per_head, H, LEGAL, {"tp=16": "E0214"}),
    ):
        yield Family(
            name,
            name,
            "GPTBigCodeForCausalLM",
            "GPTBigCodeConfig",
            dict(small, multi_query=name == "gpt_bigcode"),
            with_query_rows(bigcode, rows)
            + [(r".*h\.\d+\.attn\.c_attn\.weight", fused, whole), (r".*h\.\d+\.attn\.c_attn\.bias", fused)],
            meshes=meshes,
            refused=refused,
            reduced=(r".*c_proj\.bias",),
        )
    # OPTDecoder.forward: words that are narrower than the model go through project_in, and back through project_out
    opt = VOCABULARY + [
        (r"model\.decoder\.embed_positions\.weight", whole, whole),
        (r"model\.decoder\.project_(in|out)\.weight", whole, whole),
        (r".*decoder\.layers\.\d+\.self_attn\.[qkv]_proj\.weight", H, whole),
        (r".*decoder\.layers\.\d+\.self_attn\.[qkv]_proj\.bias", H),
        (r".*decoder\.layers\.\d+\.self_attn\.out_proj\.weight", whole, H),
        (r".*decoder\.layers\.\d+\.fc1\.weight", features, whole),
        (r".*decoder\.layers\.\d+\.fc1\.bias", features),
        (r".*decoder\.layers\.\d+\.fc2\.weight", whole, features),
        (r".*decoder\..*(out_proj|fc2)\.bias", whole),
        (r".*decoder\..*layer_norm\.(weight|bias)", whole),
    ]
    sizes = ENCODER | dict(ffn_dim=FFN, pad_token_id=0)
    for name, more in (("opt", {}), ("opt_behind", dict(word_embed_proj_dim=20, do_layer_norm_before=False))):
        yield Family(
            name,
            "opt",
            "OPTForCausalLM",
            "OPTConfig",
            {key: value for key, value in sizes.items() if key != "intermediate_size"} | more,
            opt,
            refused=PER_HEAD,
            reduced=(r".*(out_proj|fc2)\.bias",),
        )
    # BloomAttention._reshape: view(heads, 3, head_dim)
    fused = r".*h\.\d+\.self_attention\.query_key_value\.weight", r".*h\.\d+\.self_attention\.query_key_value\.bias"
    for name, model in (("bloom", "BloomForCausalLM"), ("bloom_bare", "BloomModel")):
        yield Family(
            name,
            "bloom",
            model,
            "BloomConfig",
            dict(vocab_size=VOCAB, hidden_size=HIDDEN, n_layer=2, n_head=HEADS),
            with_query_rows(BLOOM, H) + [(fused[0], per_head, whole), (fused[1], per_head)],
            refused=PER_HEAD,
            reduced=BLOOM_REDUCED,
        )
    # FalconAttention._split_heads, its three branches
    falcon = dict(vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=HEADS)
    grouped = in_groups(KV, (2 * 6, 6, 6), kept_groups(HEADS, KV))
    yield Family(
        "falcon",
        "falcon",
        "FalconForCausalLM",
        "FalconConfig",
        dict(falcon, num_kv_heads=KV, new_decoder_architecture=True, bias=True),
        BLOOM + [(fused[0], grouped, whole), (fused[1], grouped)],
        meshes=("tp=1", "tp=2", "tp=3", "tp=4", "pp=2,tp=2"),
        refused={"tp=8": "E0214"},
        reduced=BLOOM_REDUCED,
    )
    yield Family(
        "falcon_multi_query",
        "falcon_multi_query",
        "FalconForCausalLM",
        "FalconConfig",
        falcon,
        with_query_rows(BLOOM, ONE_KV) + [(fused[0], multi_query, whole)],
        meshes=ONE_KV_MESHES,
        refused=ONE_KV_REFUSED,
        leave_out=("new_decoder_architecture", "multi_query"),
    )
    yield Family(
        "falcon_multi_head",
        "falcon_multi_head",
        "FalconForCausalLM",
        "FalconConfig",
        dict(falcon, multi_query=False, parallel_attn=False, alibi=True, bias=True),
        with_query_rows(BLOOM, H) + [(fused[0], per_head, whole), (fused[1], per_head)],
        refused={"tp=16": "E0214"},
        reduced=BLOOM_REDUCED,
    )
    # MptAttention.forward: chunk(3, dim=2)
    yield Family(
        "mpt",
        "mpt",
        "MptForCausalLM",
        "MptConfig",
        dict(d_model=HIDDEN, n_heads=HEADS, n_layers=2, expansion_ratio=2, max_seq_len=64, vocab_size=VOCAB),
        VOCABULARY
        + GPT_NORMS
        + [
            (r".*blocks\.\d+\.attn\.Wqkv\.weight", side_by_side((48, H), (48, H), (48, H)), whole),
            (r".*blocks\.\d+\.attn\.out_proj\.weight", whole, H),
            (r".*blocks\.\d+\.ffn\.up_proj\.weight", features, whole),
            (r".*blocks\.\d+\.ffn\.down_proj\.weight", whole, features),
        ],
        refused=PER_HEAD,
    )


HEADS_OF_TEXT = ("text_config.num_attention_heads", "text_config.num_key_value_heads")


def text(heads, kv, head_dim, **more):
    return dict(DENSE, num_attention_heads=heads, num_key_value_heads=kv, head_dim=head_dim, **more)


def defaults():
    yield Family(
        "llama4_defaults",
        "llama4",
        "Llama4ForConditionalGeneration",
        "Llama4Config",
        dict(
            text_config=dict(
                LLAMA4_TEXT, **text(40, 8, 128) | dict(intermediate_size=EXPERT_FFN), num_local_experts=16
            ),
            vision_config=dict(
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=16,
                image_size=4,
                patch_size=2,
                intermediate_size=128,
                vision_output_dim=20,
                projector_input_dim=20,
                projector_output_dim=20,
            ),
        ),
        with_heads(LLAMA4, 40, 8) + llama4_vision(16),
        meshes=(*MESHES, "ep=4,tp=2"),
        refused={"tp=16": "E0214"},
        reduced=LLAMA4_REDUCED,
        leave_out=(
            *HEADS_OF_TEXT,
            "text_config.head_dim",
            "text_config.num_local_experts",
            "vision_config.num_attention_heads",
        ),
    )
    wide = {key: value for key, value in text(64, 8, 2, hidden_size=128).items() if key != "head_dim"}
    yield Family(
        "qwen2_vl_defaults",
        "qwen2_vl",
        "Qwen2VLForConditionalGeneration",
        "Qwen2VLConfig",
        dict(
            text_config=wide,
            vision_config=dict(depth=2, embed_dim=32, hidden_size=128, num_heads=16, mlp_ratio=3, patch_size=2),
        ),
        with_heads(LLAMA, 64, 8) + vision_tower(16, 32),
        meshes=MESHES,
        refused={"tp=12": "E0214"},
        reduced=VISION_REDUCED,
        leave_out=(*HEADS_OF_TEXT, "vision_config.num_heads"),
    )
    yield Family(
        "qwen3_vl_defaults",
        "qwen3_vl",
        "Qwen3VLForConditionalGeneration",
        "Qwen3VLConfig",
        dict(
            text_config=text(32, 32, 128),
            vision_config=dict(WIDE_TOWER, num_position_embeddings=16, num_heads=16, deepstack_visual_indexes=[0, 1]),
        ),
        with_heads(LLAMA, 32, 32) + QK_NORM + vision_tower(16, 32),
        meshes=MESHES,
        refused={"tp=64": "E0214"},
        reduced=VISION_REDUCED,
        leave_out=(*HEADS_OF_TEXT, "text_config.head_dim", "vision_config.num_heads"),
    )
    linear = dict(
        linear_num_key_heads=16,
        linear_num_value_heads=32,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        layer_types=["linear_attention", "full_attention"],
    )
    left_out = (*HEADS_OF_TEXT, "text_config.head_dim", "vision_config.num_heads") + tuple(
        f"text_config.{key}" for key in linear if key != "layer_types"
    )
    vision = dict(WIDE_TOWER, num_position_embeddings=16, num_heads=16)
    for name, model, kv, more in (
        ("qwen3_5", "Qwen3_5", 4, {}),
        (
            "qwen3_5_moe",
            "Qwen3_5Moe",
            2,
            dict(moe_intermediate_size=8, num_experts=256, num_experts_per_tok=2, shared_expert_intermediate_size=28),
        ),
    ):
        yield Family(
            name + "_defaults",
            name,
            model + "ForConditionalGeneration",
            model + "Config",
            dict(text_config=text(16, kv, 256, **linear, **more), vision_config=vision),
            with_heads(GATED, 16, kv)
            + gated_attention(16, kv, 256)
            + linear_cuts(16, 32, 128, 128)
            + vision_tower(16, 32),
            meshes=MESHES,
            refused={"tp=3" if kv == 2 else "tp=6": "E0214"},
            reduced=VISION_REDUCED,
            stacked=bool(more),
            leave_out=left_out + (("text_config.num_experts",) if more else ()),
        )
    one_kv = q_rows(8, 1)
    yield Family(
        "dbrx_defaults",
        "dbrx",
        "DbrxForCausalLM",
        "DbrxConfig",
        dict(
            d_model=HIDDEN,
            n_heads=8,
            n_layers=2,
            max_seq_len=64,
            vocab_size=VOCAB,
            attn_config=dict(kv_n_heads=1, clip_qkv=8),
            ffn_config=dict(ffn_hidden_size=EXPERT_FFN, moe_num_experts=4, moe_top_k=2),
        ),
        VOCABULARY
        + [
            (r".*attn\.Wqkv\.weight", side_by_side((48, one_kv), (6, whole), (6, whole)), whole),
            (r".*attn\.out_proj\.weight", whole, one_kv),
            (r".*norm_[12f]\.weight", whole),
            (r".*ffn\.router\.layer\.weight", whole, whole),
            (r".*ffn\.experts\.mlp\.(w1|v1|w2)", stacked_rows(4), whole),
        ],
        meshes=("ep=1", "ep=2", "ep=4"),
        refused={"ep=8": "E0210"},
        leave_out=("attn_config.kv_n_heads", "ffn_config.moe_num_experts"),
    )


def varied():
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


def with_learned_activations():
    """ApertusMLP: down_proj(act_fn(up_proj(x))), with numbers of act_fn's own."""
    own = [(r".*act_fn\.alpha_[pn]", whole), (r".*act_fn\.(beta|eps)",)]
    sizes = DENSE | dict(pad_token_id=0)
    yield Family("apertus", "apertus", "ApertusForCausalLM", "ApertusConfig", sizes, LLAMA + QK_NORM + own)


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


def fused_in_parts():
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


# NanoChatMLP is CLIPMLP; GraniteSWAAttention: a sink for each head
OTHER_DENSE = [
    (r".*mlp\.fc1\.weight", features, whole),
    (r".*mlp\.fc2\.weight", whole, features),
    (r".*self_attn\.sinks", Q),
]
DENSE_LATENT = {key: value for key, value in LATENT.items() if "expert" not in key and key != "first_k_dense_replace"}


def renamed():
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


def fused_by_head():
    layer = r".*\bh\.\d+\."
    neo = VOCABULARY + [
        (r"transformer\.wpe\.weight", whole, whole),
        (layer + r"attn\.attention\.[qkv]_proj\.weight", H, whole),
        (layer + r"attn\.attention\.out_proj\.weight", whole, H),
        (layer + r"mlp\.c_fc\.weight", features, whole),
        (layer + r"mlp\.c_fc\.bias", features),
        (layer + r"mlp\.c_proj\.weight", whole, features),
        (layer + r".*(out_proj|c_proj)\.bias", whole),
        (r".*\.ln_[12f]\.(weight|bias)", whole),
    ]
    sizes = dict(vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=FFN, num_layers=2, num_heads=HEADS)
    sizes |= dict(attention_types=[[["global", "local"], 1]], max_position_embeddings=64)
    yield Family(
        "gpt_neo",
        "gpt_neo",
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        sizes | PADDED,
        neo,
        refused=PER_HEAD,
        reduced=(r".*(out_proj|c_proj)\.bias",),
    )
    # PersimmonAttention._split_heads: view(heads, 3, head_dim)
    per_head = in_groups(HEADS, (6, 6, 6), kept_heads())
    layer = r".*layers\.\d+\."
    persimmon = VOCABULARY + with_biases(
        [
            (layer + r"self_attn\.query_key_value", per_head, whole),
            (layer + r"self_attn\.dense", whole, H),
            (layer + r"mlp\.dense_h_to_4h", features, whole),
            (layer + r"mlp\.dense_4h_to_h", whole, features),
        ]
    ) + [(r".*layernorm\.(weight|bias)", whole)]
    yield Family(
        "persimmon",
        "persimmon",
        "PersimmonForCausalLM",
        "PersimmonConfig",
        ENCODER | PADDED,
        persimmon,
        refused=PER_HEAD,
        reduced=BLOOM_REDUCED,
    )
    xglm = VOCABULARY + with_biases(
        [
            (layer + r"self_attn\.[qkv]_proj", H, whole),
            (layer + r"self_attn\.out_proj", whole, H),
            (layer + r"fc1", features, whole),
            (layer + r"fc2", whole, features),
            (r"output_projection", features, whole),
        ]
    ) + [(r".*layer_norm\.(weight|bias)", whole), (r"biogpt\.embed_positions\.weight", whole, whole)]
    sizes = dict(vocab_size=VOCAB, d_model=HIDDEN, ffn_dim=FFN, num_layers=2, attention_heads=HEADS, pad_token_id=0)
    for name, model, says in (("xglm", "XGLM", sizes), ("biogpt", "BioGpt", ENCODER | dict(pad_token_id=0))):
        yield Family(name, name, f"{model}ForCausalLM", f"{model}Config", says, xglm, refused=PER_HEAD, reduced=REDUCED)
    # BitNetAttention.forward: attn_sub_norm is over all heads; BitNetMLP.forward: ffn_sub_norm over all features
    bitnet = LLAMA + [(r".*attn_sub_norm\.weight", Q), (r".*ffn_sub_norm\.weight", features)]
    sizes = {key: value for key, value in DENSE.items() if key != "head_dim"} | PADDED
    yield Family("bitnet", "bitnet", "BitNetForCausalLM", "BitNetConfig", sizes, bitnet)
