"""The order of fused rows by the library's own methods: each is handed the row numbers instead of activations.

Run while fixtures are made. Where a family splits in a method of its own, the rows that a rank keeps must be those that
the method hands to the rank's heads.
"""

import torch

from slicing import query_heads, ranks_of


def falcon(model):
    attention = model.transformer.h[0].self_attention
    rows = attention.query_key_value.weight.shape[0]
    parts = attention._split_heads(torch.arange(rows).view(1, 1, rows))
    heads = range(attention.num_heads)
    return {
        "transformer.h.0.self_attention.query_key_value.weight": [
            set().union(*(part[0, 0, head % part.shape[2]].tolist() for part in parts)) for head in heads
        ]
    }


def bloom(model):
    attention = model.transformer.h[0].self_attention
    rows = attention.query_key_value.weight.shape[0]
    parts = attention._reshape(torch.arange(rows).view(1, 1, rows))
    return {
        "transformer.h.0.self_attention.query_key_value.weight": [
            set().union(*(part[0, head, 0].tolist() for part in parts)) for head in range(attention.num_heads)
        ]
    }


def qwen3_next(model):
    attention = model.model.layers[0].linear_attn
    numbers = [
        torch.arange(weight.shape[0]).view(1, 1, -1)
        for weight in (attention.in_proj_qkvz.weight, attention.in_proj_ba.weight)
    ]
    query, key, value, z, b, a = (part[0, 0] for part in attention.fix_query_key_value_ordering(*numbers))
    per_key = attention.num_v_heads // attention.num_k_heads
    prefix = "model.layers.0.linear_attn."
    heads = range(attention.num_v_heads)
    return {
        prefix
        + "in_proj_qkvz.weight": [
            set().union(
                *(part.tolist() for part in (query[head // per_key], key[head // per_key], value[head], z[head]))
            )
            for head in heads
        ],
        prefix + "in_proj_ba.weight": [{int(b[head]), int(a[head])} for head in heads],
    }


# Family -> (rows per head, query heads, the heads that they are grouped under).
ORDERS = {
    "falcon": (falcon, 8, 4),
    "falcon_multi_query": (falcon, 8, 1),
    "falcon_multi_head": (falcon, 8, 8),
    "bloom": (bloom, 8, 8),
    "qwen3_next": (qwen3_next, 8, 4),
}


def check(family, model, kept):
    """kept(rank, name, shape) is what the fixture says. Returns the number of comparisons."""
    if family.name not in ORDERS:
        return 0
    order, heads, kv = ORDERS[family.name]
    compared = 0
    for name, rows_of in order(model).items():
        shape = list(model.get_parameter(name).shape)
        for mesh in family.meshes:
            for rank in ranks_of(mesh):
                ours = kept(rank, name, shape)
                if ours is None:
                    continue
                theirs = set().union(*(rows_of[head] for head in query_heads(rank, heads, kv)))
                if set(ours[0]) != theirs:
                    raise SystemExit(f"{family.name} {mesh}: {name} is not what the library's method says")
                compared += 1
    return compared
