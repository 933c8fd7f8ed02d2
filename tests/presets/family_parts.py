"""A family of models, and the sizes and cuts that several tables of families share.

Every cut is written from the forward pass of the modelling code: the function that is named beside it.
"""

from dataclasses import dataclass, field

from slicing import (
    experts,
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
LINEAR = dict(
    linear_num_key_heads=4,
    linear_num_value_heads=8,
    linear_key_head_dim=3,
    linear_value_head_dim=5,
    linear_conv_kernel_dim=4,
    layer_types=["linear_attention", "full_attention"],
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
WIDE_TOWER = dict(depth=2, hidden_size=32, intermediate_size=36, patch_size=2, out_hidden_size=HIDDEN)
MESHES = ("tp=1", "tp=2", "tp=4", "tp=8")


def with_heads(cuts, heads, kv):
    """The same cuts for other numbers of heads."""
    other = {Q: q_rows(heads, kv), K: kv_rows(heads, kv)}
    return [tuple(other.get(axis, axis) for axis in cut) for cut in cuts]


PADDED = dict(pad_token_id=0)  # the class's own padding token is outside of 101 rows
LAYERNORMS = [(r".*self_attn\.(query|key)_layernorm\.weight", whole)]
MLP_BIASES = [(r".*mlp\.(gate|up)_proj\.bias", features), (r".*mlp\.down_proj\.bias", whole)]
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
# The bias that chooses experts, and a dense layer for a further token behind two norms and a projection
CHOOSING = [(r".*mlp\.(gate\.)?e_score_correction_bias", whole)]
LOCAL = dict(layer_types=["sliding_attention", "full_attention"])
# A gate for each head; here the first layer has twice the heads
MANY = 2 * HEADS
REDUCED = (r".*(out_proj|fc2)\.bias",)


def with_biases(rules):
    """Returns the rules (pattern, selector of rows, selector of columns), for weights and for their biases."""
    weights = [(name + r"\.weight", rows, columns) for name, rows, columns in rules]
    return weights + [(name + r"\.bias", rows) for name, rows, _ in rules]
