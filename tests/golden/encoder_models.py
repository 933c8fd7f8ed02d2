"""The small models that have an encoder: with a decoder that attends to it, or alone."""

T5 = dict(
    vocab_size=96,
    d_model=24,
    d_kv=8,
    d_ff=40,
    num_layers=2,
    num_decoder_layers=2,
    num_heads=4,
    relative_attention_num_buckets=8,
    relative_attention_max_distance=20,  # within the input, so that distances share the last bucket
    layer_norm_epsilon=1e-3,
    pad_token_id=None,
    eos_token_id=None,
)
GATED = dict(T5, feed_forward_proj="gated-gelu")

WHISPER = dict(
    vocab_size=96,
    d_model=24,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=40,
    decoder_ffn_dim=32,
    num_mel_bins=10,
    max_source_positions=24,
    max_target_positions=32,
    pad_token_id=None,
    bos_token_id=None,
    eos_token_id=None,
)
BART = dict(
    {key: value for key, value in WHISPER.items() if "positions" not in key and key != "num_mel_bins"},
    decoder_layers=3,
    max_position_embeddings=30,
    forced_eos_token_id=None,
)

TRANSLATOR = dict(BART, decoder_layers=2, scale_embedding=True)
NARROW = dict(
    vocab_size=96,
    hidden_size=40,
    intermediate_size=52,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=64,
    pad_token_id=None,
)
# A layer without a norm before attention, one that sees four positions to each side, and another one.
MODERNBERT = dict(
    NARROW,
    num_hidden_layers=3,
    layer_types=["full_attention", "sliding_attention", "full_attention"],
    local_attention=9,
    norm_eps=1e-3,
    rope_parameters=dict(
        full_attention=dict(rope_type="default", rope_theta=1000.0),
        sliding_attention=dict(rope_type="default", rope_theta=100.0),
    ),
    norm_bias=True,
    attention_bias=True,
    mlp_bias=True,
    classifier_bias=True,
    bos_token_id=None,
    eos_token_id=None,
    cls_token_id=None,
    sep_token_id=None,
)
DISTILBERT = dict(
    vocab_size=96,
    dim=40,
    hidden_dim=52,
    n_layers=2,
    n_heads=4,
    max_position_embeddings=30,
    pad_token_id=None,
)
ELECTRA = dict(NARROW, layer_norm_eps=1e-3)
EUROBERT = dict(NARROW, rms_norm_eps=1e-3, bos_token_id=None, eos_token_id=None, mask_token_id=3)
# Distances up to 4 have buckets of their own, and those from 13 on share one.
DEBERTA = dict(
    NARROW,
    layer_norm_eps=1e-3,
    relative_attention=True,
    position_buckets=8,
    max_position_embeddings=14,
    pos_att_type=["p2c", "c2p"],
    position_biased_input=False,
    share_att_key=True,
    norm_rel_ebd="layer_norm",
)

# name -> the class of its config, and what that says
ENCODER_MODELS = {
    "t5": ("T5Config", T5),
    "t5_gated": ("T5Config", dict(GATED, tie_word_embeddings=False, num_decoder_layers=3)),
    "umt5": ("UMT5Config", dict(GATED, feed_forward_proj="gated-silu")),
    "whisper": ("WhisperConfig", WHISPER),
    "bart": ("BartConfig", dict(BART, activation_function="relu")),
    "plbart": ("PLBartConfig", dict(BART, scale_embedding=True, activation_function="gelu")),
    "mbart": ("MBartConfig", dict(BART, scale_embedding=True, decoder_layers=2)),
    "modernbert": ("ModernBertConfig", MODERNBERT),
    "distilbert": ("DistilBertConfig", dict(DISTILBERT, activation="relu")),
    "electra": ("ElectraConfig", dict(ELECTRA, embedding_size=20, hidden_act="relu")),
    "electra_discriminator": ("ElectraConfig", dict(ELECTRA, embedding_size=40)),
    "deberta_v2": ("DebertaV2Config", DEBERTA),
    "deberta_v2_places": (
        "DebertaV2Config",
        dict(
            DEBERTA,
            max_position_embeddings=26,
            position_biased_input=True,
            type_vocab_size=2,
            embedding_size=20,
            share_att_key=False,
            norm_rel_ebd="none",
            hidden_act="relu",
        ),
    ),
    "eurobert": ("EuroBertConfig", dict(EUROBERT, num_key_value_heads=2, attention_bias=True, mlp_bias=True)),
    "eurobert_tied": ("EuroBertConfig", dict(EUROBERT, tie_word_embeddings=True, head_dim=12)),
    "camembert": ("CamembertConfig", dict(ELECTRA, pad_token_id=1, type_vocab_size=1)),
    "megatron_bert": ("MegatronBertConfig", dict(ELECTRA, hidden_act="relu", type_vocab_size=2)),
    "marian": ("MarianConfig", dict(TRANSLATOR, decoder_start_token_id=0)),
    "marian_two": (
        "MarianConfig",
        dict(
            BART,
            activation_function="swish",
            share_encoder_decoder_embeddings=False,
            decoder_vocab_size=80,
            decoder_start_token_id=0,
        ),
    ),
    "m2m_100": ("M2M100Config", dict(TRANSLATOR, activation_function="relu", pad_token_id=1)),
    "pegasus": ("PegasusConfig", TRANSLATOR),
    "blenderbot": ("BlenderbotConfig", BART),
    "t5_encoder": ("T5Config", dict(GATED, is_encoder_decoder=False)),
}
