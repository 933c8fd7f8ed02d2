"""The families: a tiny model of each from its config class, and how its own code takes the fused tensors apart.

Every cut is written from the forward pass of the modelling code: the function that is named beside it.
"""

from dataclasses import dataclass, field

from slicing import (
    features,
    in_groups,
    key_heads,
    kv_rows,
    q_rows,
    query_heads,
    side_by_side,
    two_halves,
    whole,
)

LEGAL = ("tp=1", "tp=2", "tp=3", "tp=4", "tp=8", "pp=2,tp=2")
EXPERT_MESHES = (
    "tp=1",
    "tp=2",
    "tp=3",
    "tp=4",
    "tp=8",
    "ep=2",
    "ep=4",
    "ep=2,tp=2",
    "ep=3,tp=4",
    "tp=2,ep=2",
    "pp=2,ep=2,tp=2",
)
# 4 KV heads: 6 ranks are no multiple of them, and 16 ranks leave some without a query head.
GROUPED = {"tp=6": "E0214", "tp=16": "E0214"}
# 8 heads, each with its own K and V.
PER_HEAD = {"tp=16": "E0210"}
FEW_EXPERTS = {"ep=8": "E0210"}


@dataclass
class Family:
    name: str
    preset: str
    model: str
    config: str
    sizes: dict
    cuts: list  # (regex of names, selector per axis); where several match, the last one counts
    meshes: tuple = LEGAL
    refused: dict = field(default_factory=lambda: dict(GROUPED))
    reduced: tuple = ()  # regexes of biases that are added after the reduction
    stacked: bool = False  # the form that the library holds, instead of the one that it publishes
    leave_out: tuple = ()  # config keys whose value is the class's default and that published configs leave out
    layers: dict = field(default_factory=lambda: {"": 2})  # prefix of names -> number of layers
    experts: int = 6
    published: object = (
        None  # tensors -> further rows, of names that published checkpoints have and the library ignores
    )
    says: object = None  # config -> the one that is published, where the library writes another
    renamed: tuple = ()  # (regex, replacement) of names that the library loads as published and does not write so
    transposed: str = ""  # regex of stacks of kernels that are published [.., in, out], and held and saved [.., out, in]


HEADS, KV, HEAD_DIM, HIDDEN, FFN, VOCAB = 8, 4, 4, 48, 76, 101
DENSE = dict(
    num_hidden_layers=2,
    hidden_size=HIDDEN,
    intermediate_size=FFN,
    num_attention_heads=HEADS,
    num_key_value_heads=KV,
    head_dim=HEAD_DIM,
    vocab_size=VOCAB,
    max_position_embeddings=64,
)
DIVIDED = {key: value for key, value in DENSE.items() if key != "head_dim"}  # head_dim = hidden / heads = 6
ENCODER = {key: value for key, value in DIVIDED.items() if key != "num_key_value_heads"}

Q, K = q_rows(HEADS, KV), kv_rows(HEADS, KV)
H = q_rows(HEADS, HEADS)  # heads with their own K and V


def kept_heads(heads=HEADS, kv=HEADS):
    return lambda rank: query_heads(rank, heads, kv)


def kept_groups(heads, kv):
    return lambda rank: key_heads(rank, heads, kv)


VOCABULARY = [
    (r"(.*\.)?(embed_tokens|wte|word_embeddings|shared|embeddings|embed_in)\.weight", features, whole),
    (r"(.*\.)?(lm_head|embed_out)\.weight", features, whole),
]
ATTENTION = [
    (r".*layers\.\d+\.self_attn\.q_proj\.weight", Q, whole),
    (r".*layers\.\d+\.self_attn\.[kv]_proj\.weight", K, whole),
    (r".*layers\.\d+\.self_attn\.q_proj\.bias", Q),
    (r".*layers\.\d+\.self_attn\.[kv]_proj\.bias", K),
    (r".*layers\.\d+\.self_attn\.o_proj\.weight", whole, Q),
    (r".*layers\.\d+\.self_attn\.o_proj\.bias", whole),
]
MLP = [
    (r".*layers\.\d+\.mlp\.(gate|up)_proj\.weight", features, whole),
    (r".*layers\.\d+\.mlp\.down_proj\.weight", whole, features),
]
NORMS = [(r".*layers\.\d+\.[a-z_]*norm\.(weight|bias)", whole), (r"([a-z_]+\.)*norm\.(weight|bias)", whole)]
LLAMA = VOCABULARY + ATTENTION + MLP + NORMS
QK_NORM = [(r".*layers\.\d+\.self_attn\.[qk]_norm\.weight", whole)]


def dense():
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
        reduced=(r".*(dense|fc2)\.bias",),
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


def generative():
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


BERT_LAYER = r".*encoder\.layer\.\d+\."
BERT = VOCABULARY + [
    (r".*embeddings\.(position|token_type)_embeddings\.weight", whole, whole),
    (r".*\.LayerNorm\.(weight|bias)", whole),
    (BERT_LAYER + r"attention\.self\.(query|key|value)\.weight", H, whole),
    (BERT_LAYER + r"attention\.self\.(query|key|value)\.bias", H),
    (BERT_LAYER + r"attention\.output\.dense\.weight", whole, H),
    (BERT_LAYER + r"attention\.output\.dense\.bias", whole),
    (BERT_LAYER + r"intermediate\.dense\.weight", features, whole),
    (BERT_LAYER + r"intermediate\.dense\.bias", features),
    (BERT_LAYER + r"output\.dense\.weight", whole, features),
    (BERT_LAYER + r"output\.dense\.bias", whole),
    (BERT_LAYER + r"(attention\.)?output\.LayerNorm\.(weight|bias)", whole),
    (r"(bert\.pooler|cls\.predictions\.transform|lm_head)\.dense\.weight", whole, whole),
    (r"(bert\.pooler|cls\.predictions\.transform|lm_head)\.dense\.bias", whole),
    (r"cls\.seq_relationship\.weight", whole, whole),
    (r"cls\.seq_relationship\.bias", whole),
    (r"classifier(\.[a-z_]+)?\.weight", whole, whole),
    (r"classifier(\.[a-z_]+)?\.bias", whole),
    (r"(cls\.predictions|lm_head)\.bias", features),
    (r"lm_head\.layer_norm\.(weight|bias)", whole),
]


def encoders():
    reduced = (r".*layer\.\d+\.(attention\.)?output\.dense\.bias",)
    for name, model in (
        ("bert", "BertForPreTraining"),
        ("bert_bare", "BertModel"),
        ("roberta", "RobertaForMaskedLM"),
        ("roberta_classifier", "RobertaForSequenceClassification"),
    ):
        preset = name.split("_")[0]
        cuts = BERT if name != "bert_bare" else [(cut[0].replace(r"bert\.pooler", "pooler"), *cut[1:]) for cut in BERT]
        yield Family(
            name, preset, model, preset.capitalize() + "Config", ENCODER, cuts, refused=PER_HEAD, reduced=reduced
        )
    t5 = VOCABULARY + [
        (r"(en|de)coder\.block\.\d+\.layer\.\d\.(Self|EncDec)Attention\.[qkv]\.weight", H, whole),
        (r"(en|de)coder\.block\.\d+\.layer\.\d\.(Self|EncDec)Attention\.o\.weight", whole, H),
        (r"(en|de)coder\.block\.\d+\.layer\.\d\.SelfAttention\.relative_attention_bias\.weight", whole, H),
        (r"(en|de)coder\.block\.\d+\.layer\.\d\.DenseReluDense\.wi(_0|_1)?\.weight", features, whole),
        (r"(en|de)coder\.block\.\d+\.layer\.\d\.DenseReluDense\.wo\.weight", whole, features),
        (r"(en|de)coder\.block\.\d+\.layer\.\d\.layer_norm\.weight", whole),
        (r"(en|de)coder\.final_layer_norm\.weight", whole),
    ]
    small = dict(vocab_size=VOCAB, d_model=HIDDEN, d_kv=HEAD_DIM, d_ff=FFN, num_heads=HEADS, num_layers=2)
    yield Family("t5", "t5", "T5ForConditionalGeneration", "T5Config", small, t5, refused=PER_HEAD)
    yield Family("t5_encoder", "t5", "T5EncoderModel", "T5Config", small, t5, refused=PER_HEAD)
    yield Family(
        "t5_gated",
        "t5",
        "T5ForConditionalGeneration",
        "T5Config",
        dict(small, num_decoder_layers=3, feed_forward_proj="gated-gelu"),
        t5,
        refused=PER_HEAD,
        layers={"encoder.": 2, "decoder.": 3},
    )
    side = r"model\.(en|de)coder\.layers\.\d+\."
    yield Family(
        "whisper",
        "whisper",
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        dict(
            vocab_size=VOCAB,
            num_mel_bins=8,
            encoder_layers=2,
            encoder_attention_heads=HEADS,
            decoder_layers=2,
            decoder_attention_heads=HEADS,
            decoder_ffn_dim=FFN,
            encoder_ffn_dim=80,
            d_model=HIDDEN,
            max_source_positions=30,
            max_target_positions=20,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
        ),
        VOCABULARY
        + [
            (side + r"(self|encoder)_attn\.[qkv]_proj\.weight", H, whole),
            (side + r"(self|encoder)_attn\.[qv]_proj\.bias", H),
            (side + r"(self|encoder)_attn\.out_proj\.weight", whole, H),
            (side + r"(self|encoder)_attn\.out_proj\.bias", whole),
            (side + r"fc1\.weight", features, whole),
            (side + r"fc1\.bias", features),
            (side + r"fc2\.weight", whole, features),
            (side + r"fc2\.bias", whole),
            (side + r"[a-z_]*layer_norm\.(weight|bias)", whole),
            (r"model\.(en|de)coder\.layer_norm\.(weight|bias)", whole),
            (r"model\.(en|de)coder\.embed_positions\.weight", whole, whole),
            (r"model\.encoder\.conv[12]\.weight", whole, whole, whole),
            (r"model\.encoder\.conv[12]\.bias", whole),
        ],
        refused=PER_HEAD,
        reduced=(r".*layers.*(out_proj|fc2)\.bias",),
    )
