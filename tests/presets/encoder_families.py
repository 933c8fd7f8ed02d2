"""Encoders and translators that came after BERT and BART, and decoders of their kind. See families.py."""

from families import (
    BLOOM_REDUCED,
    DENSE,
    ENCODER,
    FFN,
    HEADS,
    HIDDEN,
    LLAMA,
    PER_HEAD,
    VOCAB,
    VOCABULARY,
    Family,
    H,
    Q,
    kept_heads,
)
from further_families import STACK_CUTS, STACKS
from recent_families import PADDED
from slicing import features, in_groups, side_by_side, two_halves, whole

REDUCED = (r".*(out_proj|fc2)\.bias",)


def with_biases(rules):
    """Returns the rules (pattern, selector of rows, selector of columns), for weights and for their biases."""
    weights = [(name + r"\.weight", rows, columns) for name, rows, columns in rules]
    return weights + [(name + r"\.bias", rows) for name, rows, _ in rules]


def encoders():
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


def generative():
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
