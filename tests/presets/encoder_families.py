"""Encoders, and pairs of an encoder and a decoder. See family_parts.py."""

from family_parts import (
    DIVIDED,
    ENCODER,
    FFN,
    H,
    HEADS,
    HEAD_DIM,
    HIDDEN,
    LLAMA,
    MLP_BIASES,
    PADDED,
    PER_HEAD,
    REDUCED,
    VOCAB,
    VOCABULARY,
    Family,
    with_biases,
)
from slicing import features, side_by_side, two_halves, whole


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


def plain():
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


def of_text():
    for name, model, config in (
        ("bart", "BartForConditionalGeneration", "BartConfig"),
        ("mbart", "MBartForConditionalGeneration", "MBartConfig"),
    ):
        reduced = (r".*(out_proj|fc2)\.bias",)
        yield Family(name, "bart", model, config, STACKS, STACK_CUTS, refused=PER_HEAD, reduced=reduced)


# MegatronBertLayer: norms before attention and MLP; MegatronBertEncoder: one behind the last layer
MEGATRON = [(r"bert\.encoder\.(layer\.\d+\.(attention\.)?)?ln\.(weight|bias)", whole)]


def multilingual():
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


def varied():
    layer = r".*layers\.\d+\."
    # ModernBertAttention.forward: view(3, heads, head_dim); ModernBertMLP.forward: chunk(2)
    qkv = side_by_side((HIDDEN, H), (HIDDEN, H), (HIDDEN, H))
    modernbert = with_biases(
        [
            (r"(model\.)?embeddings\.tok_embeddings", features, whole),
            (r"decoder", features, whole),
            (r"(head\.dense|classifier)", whole, whole),
            (layer + r"attn\.Wqkv", qkv, whole),
            (layer + r"attn\.Wo", whole, H),
            (layer + r"mlp\.Wi", two_halves, whole),
            (layer + r"mlp\.Wo", whole, features),
        ]
    ) + [(r".*norm\.(weight|bias)", whole)]
    biases = dict(attention_bias=True, mlp_bias=True, norm_bias=True, classifier_bias=True)
    tokens = {key: 0 for key in ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")}
    for name, model, more in (
        ("modernbert", "ModernBertForMaskedLM", biases),
        ("modernbert_bare", "ModernBertModel", {}),
        ("modernbert_classifier", "ModernBertForSequenceClassification", {}),
    ):
        yield Family(
            name,
            "modernbert",
            model,
            "ModernBertConfig",
            ENCODER | tokens | more,
            modernbert,
            refused=PER_HEAD,
            reduced=(r".*layers.*Wo\.bias",),
        )
    layer = r".*transformer\.layer\.\d+\."
    distilbert = VOCABULARY + [
        (r".*position_embeddings\.weight", whole, whole),
        (r".*([lL]ayer_?[nN]orm)\.(weight|bias)", whole),
    ]
    distilbert += with_biases(
        [
            (layer + r"attention\.[qkv]_lin", H, whole),
            (layer + r"attention\.out_lin", whole, H),
            (layer + r"ffn\.lin1", features, whole),
            (layer + r"ffn\.lin2", whole, features),
            (r"vocab_projector", features, whole),
            (r"(vocab_transform|pre_classifier|classifier|qa_outputs)", whole, whole),
        ]
    )
    sizes = dict(vocab_size=VOCAB, dim=HIDDEN, hidden_dim=FFN, n_layers=2, n_heads=HEADS, max_position_embeddings=64)
    for name, model in (
        ("distilbert", "DistilBertForMaskedLM"),
        ("distilbert_bare", "DistilBertModel"),
        ("distilbert_classifier", "DistilBertForSequenceClassification"),
    ):
        yield Family(
            name,
            "distilbert",
            model,
            "DistilBertConfig",
            sizes,
            distilbert,
            refused=PER_HEAD,
            reduced=(r".*(out_lin|lin2)\.bias",),
        )
    layer = r".*encoder\.layer\.\d+\."
    electra = VOCABULARY + with_biases(
        [
            (layer + r"attention\.self\.(query|key|value)", H, whole),
            (layer + r"attention\.output\.dense", whole, H),
            (layer + r"intermediate\.dense", features, whole),
            (layer + r"output\.dense", whole, features),
            (r"generator_lm_head", features, whole),
            (r"electra\.embeddings_project", whole, whole),
            (r"(generator|discriminator)_predictions\.dense(_prediction)?", whole, whole),
        ]
    )
    # The last match counts: attention's own before that of the MLP.
    electra = sorted(electra, key=lambda entry: "attention" in entry[0])
    electra += [
        (r".*embeddings\.(position|token_type)_embeddings\.weight", whole, whole),
        (r".*LayerNorm\.(weight|bias)", whole),
    ]
    for name, model, width in (
        ("electra", "ElectraForMaskedLM", 20),
        ("electra_discriminator", "ElectraForPreTraining", HIDDEN),
    ):
        yield Family(
            name,
            "electra",
            model,
            "ElectraConfig",
            ENCODER | dict(embedding_size=width),
            electra,
            refused=PER_HEAD,
            reduced=(r".*layer\.\d+\..*output\.dense\.bias",),
        )
    # DisentangledSelfAttention.forward: every head's query meets the keys of all distances, which all layers share
    layer = r".*encoder\.layer\.\d+\."
    deberta = electra + with_biases(
        [
            (layer + r"attention\.self\.(query|key|value|pos_key|pos_query)_proj", H, whole),
            (r"(lm_predictions\.lm_head|cls\.predictions\.transform|pooler|classifier)(\.dense)?", whole, whole),
        ]
    )
    deberta += [
        (r"(cls\.predictions|lm_predictions\.lm_head)\.bias", features),
        (r"deberta\.embeddings\.embed_proj\.weight", whole, whole),
        (r"deberta\.encoder\.rel_embeddings\.weight", whole, whole),
    ]
    distances = dict(relative_attention=True, position_buckets=8, norm_rel_ebd="layer_norm", pos_att_type=["p2c", "c2p"])
    for name, model, more in (
        ("deberta_v2", "DebertaV2ForMaskedLM", dict(share_att_key=True, position_biased_input=False)),
        ("deberta_v2_published", "DebertaV2ForMaskedLM", dict(share_att_key=True, legacy=False)),
        ("deberta_v2_classifier", "DebertaV2ForSequenceClassification", dict(embedding_size=20, type_vocab_size=2)),
    ):
        yield Family(
            name,
            "deberta_v2",
            model,
            "DebertaV2Config",
            ENCODER | dict(pad_token_id=0) | distances | more,
            deberta,
            refused=PER_HEAD,
            reduced=(r".*layer\.\d+\..*output\.dense\.bias",),
        )


def translators():
    for name, preset, model, more in (
        ("marian", "marian", "MarianMTModel", {}),
        ("marian_two", "marian", "MarianMTModel", dict(share_encoder_decoder_embeddings=False, decoder_vocab_size=90)),
        ("m2m_100", "bart", "M2M100ForConditionalGeneration", dict(pad_token_id=1)),
        ("pegasus", "bart", "PegasusForConditionalGeneration", {}),
        ("blenderbot", "bart", "BlenderbotForConditionalGeneration", {}),
        ("plbart", "plbart", "PLBartForConditionalGeneration", {}),
    ):
        config = model.replace("MTModel", "").replace("ForConditionalGeneration", "") + "Config"
        sizes = STACKS | dict(pad_token_id=0) | more
        yield Family(name, preset, model, config, sizes, STACK_CUTS, refused=PER_HEAD, reduced=REDUCED)
