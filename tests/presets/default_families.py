"""Families with the attention of their config class's defaults, and a config that leaves them out.

A config inside a config is published without what equals its class's defaults, so presets know these. See families.py.
"""

from expert_families import (
    EXPERT_FFN,
    GATED,
    LLAMA4,
    LLAMA4_REDUCED,
    LLAMA4_TEXT,
    VISION_REDUCED,
    gated_attention,
    linear_cuts,
    llama4_vision,
    vision_tower,
)
from families import DENSE, HIDDEN, LLAMA, QK_NORM, VOCAB, VOCABULARY, Family, K, Q
from slicing import kv_rows, q_rows, side_by_side, stacked_rows, whole

HEADS_OF_TEXT = ("text_config.num_attention_heads", "text_config.num_key_value_heads")
TOWER = dict(depth=2, hidden_size=32, intermediate_size=36, patch_size=2, out_hidden_size=HIDDEN)
MESHES = ("tp=1", "tp=2", "tp=4", "tp=8")


def with_heads(cuts, heads, kv):
    """The same cuts for other numbers of heads."""
    other = {Q: q_rows(heads, kv), K: kv_rows(heads, kv)}
    return [tuple(other.get(axis, axis) for axis in cut) for cut in cuts]


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
            vision_config=dict(TOWER, num_position_embeddings=16, num_heads=16, deepstack_visual_indexes=[0, 1]),
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
    vision = dict(TOWER, num_position_embeddings=16, num_heads=16)
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
