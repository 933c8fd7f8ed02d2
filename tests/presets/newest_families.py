"""Families of late 2026, variations of those before them. See families.py."""

from expert_families import EXPERT_FFN, EXPERTS, LATENT, LATENT_CUTS, LATENT_MESHES, MOE, REFUSED, ROUTED
from families import DENSE, DIVIDED, EXPERT_MESHES, LLAMA, QK_NORM, Family, Q
from further_families import CHOOSING
from later_families import LOCAL
from recent_families import GRANITE, PADDED, PIXTRAL, PIXTRAL_CONFIG
from slicing import whole

# A.X-K1's norm behind experts; GraniteSWAAttention: a sink for each head
OTHER_NORMS = [(r".*(mlp\.)?post_mlp_layernorm\.weight", whole)]
SINKS = [(r".*self_attn\.sinks", Q)]


def mixtures():
    mellum = MOE | LOCAL | dict(mlp_layer_types=["dense", "sparse"])
    for suffix, stacked in (("", False), ("_stacked", True)):
        yield Family(
            "mellum" + suffix,
            "mellum",
            "MellumForCausalLM",
            "MellumConfig",
            DENSE | PADDED | mellum,
            LLAMA + QK_NORM + ROUTED,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
        )
    groups = dict(n_group=2, topk_group=1)
    for name, model, sizes, stacked in (
        ("axk1", "AXK1", LATENT | groups, False),
        ("axk1_stacked", "AXK1", LATENT | groups, True),
        ("mistral4", "Mistral4", LATENT, False),
    ):
        yield Family(
            name,
            name.removesuffix("_stacked"),
            f"{model}ForCausalLM",
            f"{model}Config",
            sizes | PADDED,
            LATENT_CUTS + CHOOSING + OTHER_NORMS,
            stacked=stacked,
            **LATENT_MESHES,
        )

    granite = dict(num_local_experts=EXPERTS, num_experts_per_tok=2, intermediate_size=EXPERT_FFN)
    granite |= LOCAL | dict(shared_intermediate_size=28)
    for suffix, stacked in (("", False), ("_stacked", True)):
        yield Family(
            "granitemoe_swa" + suffix,
            "granitemoe_swa",
            "GraniteMoeSWAForCausalLM",
            "GraniteMoeSWAConfig",
            DIVIDED | PADDED | granite,
            LLAMA + GRANITE + SINKS,
            meshes=EXPERT_MESHES,
            refused=REFUSED,
            stacked=stacked,
        )


def multimodal():
    yield Family(
        "mistral3_mistral4",
        "mistral3_mistral4",
        "Mistral3ForConditionalGeneration",
        "Mistral3Config",
        dict(text_config=LATENT | PADDED | dict(model_type="mistral4"), vision_config=PIXTRAL_CONFIG),
        LATENT_CUTS + PIXTRAL,
        **LATENT_MESHES,
    )
