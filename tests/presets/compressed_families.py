"""DeepSeek V4: heads in groups, one key of all heads, and entries that stand for several tokens. See families.py."""

from expert_families import EXPERT_FFN, EXPERTS, next_token_layer
from families import EXPERT_MESHES, FEW_EXPERTS, HIDDEN, PER_HEAD, Family
from recent_families import PADDED
from slicing import features, on_every_device, q_rows, whole

# DeepseekV4Attention: 8 groups of 2 heads, each with a projection of its own (DeepseekV4GroupedLinear)
HEAD_GROUPS, GROUP_HEADS, GROUP_RANK, STREAMS = 8, 2, 6, 4
GROUPS = q_rows(HEAD_GROUPS, HEAD_GROUPS)
COMPRESSED = [
    (r"(model\.embed_tokens|head)\.weight", features, whole),
    (r"model\.norm\.weight", whole),
    (r".*hc_head.*", on_every_device),
    (r".*\b(attn|ffn)_norm\.weight", whole),
    (r".*\.attn\.(q_norm|kv_norm|norm)\.weight", whole),
    (r".*\.attn\.(wq_a|wkv)\.weight", whole, whole),
    (r".*\.attn\.(wq_b|wo_a)\.weight", GROUPS, whole),
    (r".*\.attn\.wo_b\.weight", whole, GROUPS),
    (r".*\.attn\.attn_sink", GROUPS),
    (r".*\.attn\.(indexer|compressor)\..*", on_every_device),
    (r".*\.hc_(attn|ffn)_(fn|base|scale)", on_every_device),
    (r".*\.ffn\.gate\.(weight|bias|tid2eid)", on_every_device),
    (r".*\.ffn\.(experts\.\d+|shared_experts)\.w[13]\.weight", features, whole),
    (r".*\.ffn\.(experts\.\d+|shared_experts)\.w2\.weight", whole, features),
    (r"mtp\.0\.([eh]_proj|[eh]norm|norm)\.weight", on_every_device),
]


def compressing():
    sizes = dict(
        num_hidden_layers=3,
        hidden_size=HIDDEN,
        moe_intermediate_size=EXPERT_FFN,
        num_attention_heads=HEAD_GROUPS * GROUP_HEADS,
        head_dim=8,
        q_lora_rank=10,
        n_routed_experts=EXPERTS,
        num_experts_per_tok=2,
        vocab_size=101,
        compress_ratios=[0, 4, 128],
        num_hash_layers=1,
        qk_rope_head_dim=4,
        o_groups=HEAD_GROUPS,
        o_lora_rank=GROUP_RANK,
        index_n_heads=4,
        index_head_dim=4,
        index_topk=3,
        sliding_window=8,
        hc_mult=STREAMS,
    )
    square = HIDDEN, HIDDEN
    outer = [("e_proj.weight", *square), ("h_proj.weight", *square)]
    outer += [(f"{name}.weight", HIDDEN) for name in ("enorm", "hnorm", "norm")]
    outer += [("hc_head_fn", STREAMS, STREAMS * HIDDEN), ("hc_head_base", STREAMS), ("hc_head_scale", 1), ("ffn.gate.bias", EXPERTS)]

    def further(tensors):
        layer = next_token_layer("model.layers.0.", "mtp.0.", *[("mtp.0." + name, *shape) for name, *shape in outer])
        # The library saves the norm of the keys under a name that it does not read.
        return [
            [name.replace("attn.norm", "attn.kv_norm"), *rest] for name, *rest in layer(tensors) if "tid2eid" not in name
        ]

    yield Family(
        "deepseek_v4",
        "deepseek_v4",
        "DeepseekV4ForCausalLM",
        "DeepseekV4Config",
        sizes | PADDED,
        COMPRESSED,
        meshes=EXPERT_MESHES,
        refused=PER_HEAD | FEW_EXPERTS,
        layers={"": 3},
        published=further,
    )
