"""Encoders and translators that came after BERT and BART, and decoders of their kind. See families.py."""

from families import (
    ENCODER,
    FFN,
    HEADS,
    HIDDEN,
    PER_HEAD,
    VOCAB,
    VOCABULARY,
    Family,
    H,
)
from further_families import STACK_CUTS, STACKS
from slicing import features, side_by_side, two_halves, whole

REDUCED = (r".*(out_proj|fc2)\.bias",)


def with_biases(rules):
    """Of (pattern, selector of the rows, selector of the columns) those of the weights and of the biases."""
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


def translators():
    for name, preset, model, more in (
        ("marian", "marian", "MarianMTModel", {}),
        ("marian_two", "marian", "MarianMTModel", dict(share_encoder_decoder_embeddings=False, decoder_vocab_size=90)),
        ("m2m_100", "bart", "M2M100ForConditionalGeneration", dict(pad_token_id=1)),
        ("pegasus", "bart", "PegasusForConditionalGeneration", {}),
        ("blenderbot", "bart", "BlenderbotForConditionalGeneration", {}),
    ):
        config = model.replace("MTModel", "").replace("ForConditionalGeneration", "") + "Config"
        sizes = STACKS | dict(pad_token_id=0) | more
        yield Family(name, preset, model, config, sizes, STACK_CUTS, refused=PER_HEAD, reduced=REDUCED)
