"""Families whose layers differ in more than a window: in the number of their heads, or in the kind of their attention."""

from expert_families import EXPERT_FFN, EXPERTS, REFUSED, ROUTED, next_token_layer
from families import DENSE, EXPERT_MESHES, HEADS, HIDDEN, KV, LLAMA, Family
from further_families import CHOOSING
from slicing import kv_rows, on_every_device, q_rows, whole

# MiMoV2FlashAttention: the layers with a window, here the second, have twice the heads of keys and values
LOCAL_Q, LOCAL_K = q_rows(HEADS, 2 * KV), kv_rows(HEADS, 2 * KV)
MIMO = [
    (r".*layers\.1\.self_attn\.q_proj\.weight", LOCAL_Q, whole),
    (r".*layers\.1\.self_attn\.[kv]_proj\.weight", LOCAL_K, whole),
    (r".*layers\.1\.self_attn\.q_proj\.bias", LOCAL_Q),
    (r".*layers\.1\.self_attn\.[kv]_proj\.bias", LOCAL_K),
    (r".*layers\.1\.self_attn\.o_proj\.weight", whole, LOCAL_Q),
    (r".*self_attn\.(attention_sink_bias|sinks)", LOCAL_Q),
    (r"model\.mtp\..*", on_every_device),
]


def mixtures():
    mimo = dict(
        head_dim=6,
        v_head_dim=5,
        moe_intermediate_size=EXPERT_FFN,
        n_routed_experts=EXPERTS,
        num_experts_per_tok=2,
        attention_bias=True,
        layer_types=["full_attention", "sliding_attention"],
        mlp_layer_types=["dense", "sparse"],
        pad_token_id=None,
    )
    further = next_token_layer("model.layers.0.", "model.mtp.layers.0.", ("model.mtp.layers.0.eh_proj.weight", HIDDEN, 2 * HIDDEN))
    for name, stacked, published in (("mimo_v2_flash", False, further), ("mimo_v2_flash_stacked", True, None)):
        yield Family(
            name,
            "mimo_v2_flash",
            "MiMoV2FlashForCausalLM",
            "MiMoV2FlashConfig",
            DENSE | mimo,
            LLAMA + ROUTED + CHOOSING + MIMO,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
            published=published,
        )
