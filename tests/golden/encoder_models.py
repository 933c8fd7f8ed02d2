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

# name -> the class of its config, and what that says
ENCODER_MODELS = {
    "t5": ("T5Config", T5),
    "t5_gated": ("T5Config", dict(GATED, tie_word_embeddings=False, num_decoder_layers=3)),
    "umt5": ("UMT5Config", dict(GATED, feed_forward_proj="gated-silu")),
    "whisper": ("WhisperConfig", WHISPER),
    "bart": ("BartConfig", dict(BART, activation_function="relu")),
    "mbart": ("MBartConfig", dict(BART, scale_embedding=True, decoder_layers=2)),
    "t5_encoder": ("T5Config", dict(GATED, is_encoder_decoder=False)),
}
