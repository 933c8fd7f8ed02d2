"""Images for the models that have a tower: one before the words of every sequence, which has as many tokens as patches.

A token for the class, where there is one, stands behind the patches, wherever the library puts it.
"""

import math

import torch

# Whose tower has as many patches as its learned places, and lists of patches that make a square grid.
SHAPES = {name: (1, 16) for name in ("gemma3", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "glm4v", "glm4v_moe")}
SHAPES |= {name: (1, 17) for name in ("llama4", "llava", "llava_mistral", "internvl", "internvl_qwen3")}
# Whose model type has a token for the class, and whose has it first.
CLASS_FIRST = ("llava", "llava_next", "internvl")
WITH_CLASS = ("llama4", *CLASS_FIRST)
# Models that do not use the last layer of their tower.
LAST_UNREAD = ("llava", "llava_next")
# Models that also run on words alone.
ALSO_WORDS = ("gemma3",)
# Models whose words have one position each instead of three.
ONE_POSITION = ("exaone4_5",)
# Models whose towers the graphs compute.
WITH_TOWER = ("mistral3", "exaone4_5", "qwen2_vl", "qwen2_5_vl", "llava_next", *SHAPES)


def is_of_another_layer(config):
    """Returns True if the words attend to another layer of LLaVA's tower than the last but one."""
    return config.model_type in LAST_UNREAD and config.vision_feature_layer != -2


def tower_of(model):
    """The module that reads images, where the graphs compute it."""
    if model.config.model_type not in WITH_TOWER or is_of_another_layer(model.config):
        return None
    whole = getattr(model, "model", model)
    return next(getattr(whole, name) for name in ("visual", "vision_tower", "vision_model") if hasattr(whole, name))


def layers_of(tower):
    return next(module for module in tower.modules() if isinstance(module, torch.nn.ModuleList))


def is_of_tower(model, layers, model_types):
    """Returns True if these are the layers of the tower of one of the types."""
    tower = tower_of(model)
    return tower is not None and model.config.model_type in model_types and layers is layers_of(tower)


def as_positions(model, layers):
    """Returns the function that reorders a layer's hidden states as positions: the class token last."""
    is_behind = not is_of_tower(model, layers, CLASS_FIRST)
    return (lambda hidden: hidden) if is_behind else lambda hidden: hidden.roll(-1, dims=1)


def last_read(model, layers):
    """The layer whose result is that of the stack."""
    return layers[-2] if is_of_tower(model, layers, LAST_UNREAD) else layers[-1]


def by_sequence(hidden, shape):
    """Patches that the library puts into one row, image after image."""
    return hidden.reshape(*shape, hidden.shape[-1])


def side_of(config):
    """Pixels along a patch."""
    size = config.patch_size
    return size if isinstance(size, int) else size[0]


def side_of_square(model):
    """Side of the square of patches that becomes one position."""
    config = model.config
    if config.model_type in LAST_UNREAD:
        return 1
    if config.model_type == "gemma3":
        return model.model.multi_modal_projector.kernel_size
    return getattr(config, "spatial_merge_size", None) or getattr(config.vision_config, "spatial_merge_size", 2)


def grid_of(model, patches):
    """Rows and columns: the widest square of squares, and as many rows as it takes."""
    side = side_of_square(model)
    width = math.isqrt(patches) // side * side
    return patches // width, width


def given(model, input_ids, random):
    """The pixels of every patch; the words that an image takes the place of are marked in input_ids."""
    config = model.config.vision_config
    channels = getattr(config, "num_channels", None) or config.in_channels
    size = channels * getattr(config, "temporal_patch_size", 1) * side_of(config) ** 2
    pixels = torch.from_numpy(random.standard_normal((*input_ids.shape, size))).float()
    # LLaVA's class is no position, and LLaVA-NeXT has one for the end of a line.
    patches = input_ids.shape[1] - (model.config.model_type == "llava")
    positions = patches // side_of_square(model) ** 2
    image_token = model.config.image_token_id
    input_ids[input_ids == image_token] = image_token + 1
    input_ids[:, :positions] = image_token
    return {"given": pixels}


def inputs(model, pixels):
    """Inputs as the library reads them; positions are those of text, also for an image."""
    if model.config.model_type in WITH_CLASS:
        pixels = pixels[:, :-1]
    images, patches, _ = pixels.shape
    rows, columns = grid_of(model, patches)
    if hasattr(getattr(model, "model", None), "visual"):
        axes = 1 if model.config.model_type in ONE_POSITION else 3
        return {
            "pixel_values": pixels.flatten(0, 1),
            "image_grid_thw": torch.tensor([[1, rows, columns]] * images),
            "position_ids": torch.arange(patches).expand(axes, images, patches).squeeze(0),
        }
    side = side_of(model.config.vision_config)
    squares = pixels.reshape(images, rows, columns, -1, side, side)
    values = squares.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)
    if model.config.model_type == "llava_next":
        values = values[:, None]
    elif model.config.model_type != "mistral3":
        return {"pixel_values": values}
    return {"pixel_values": values, "image_sizes": torch.tensor([[rows * side, columns * side]] * images)}
