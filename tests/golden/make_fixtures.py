"""Writes the golden fixtures: the small models, and the values that the transformers library computes from them.

usage: make_fixtures.py [NAME...]          needs torch, transformers, numpy and safetensors; the tests need none of them

Per name of FAMILIES
  models/NAME.json             config, names and shapes as save_pretrained writes them, and how to draw the weights
  expected/NAME.safetensors    computed by the model that is loaded back from such a checkpoint, in f32 on the CPU, eager:
      input_ids [1, 8] i64
      positions [3] i64                         the positions of hidden.N and logits that are kept: all are computed
      hidden.0 .. hidden.N [1, 3, embed] f32    the input of each layer; the last one's output, before the final norm;
                                                 of an encoder's or a tower's layers, then of the decoder's
      given [1, 8, size] f32                    the other input: two frames of sound per position, or the pixels of
                                                 every patch of an image
      logits [1, 3, vocab] f32                  an encoder's last output; a decoder reads the encoder's input
  expected/NAME.words.safetensors                for images.ALSO_WORDS: input_ids and logits without an image
and functions.json: the same library's activations, routers and rotation frequencies at many points (functions.py).

No option that changes a result has the value that hides it: epsilons are large, windows shorter than the input, caps
and clamps bite, biases and norms are random. weights.py draws the weights.
"""

import json
import pathlib
import sys
import tempfile
import warnings
import zlib

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

import functions
import images
import weights
from attention_models import ATTENTION_MODELS
from attention_variants import ATTENTION_VARIANTS
from encoder_models import ENCODER_MODELS
from mixed_models import MIXED_MODELS
from published import PUBLISHED
from recurrent_models import RECURRENT_MODELS
from tower_models import TOWER_MODELS

HERE = pathlib.Path(__file__).parent
MODELS, EXPECTED = HERE / "models", HERE / "expected"
VERSIONS = f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}"
MASKED = ("bert", "roberta", "modernbert", "distilbert", "electra", "deberta_v2", "deberta_v2_places")
MASKED += ("eurobert", "eurobert_tied", "camembert", "megatron_bert")
DISCRIMINATORS = ("electra_discriminator",)
# Whose position depends on which tokens before it are padding: token 1.
WITHOUT_PADDING = ("roberta", "camembert", "m2m_100")
# Whose stacks of experts are published [.., in, out], and held and saved [.., out, in].
TRANSPOSED = ("qwen3_vl_moe",)
# Whose published names the library reads and does not write, or that stand for what it holds.
HELD = ("kimi_k25", "olmo_hybrid_in_place")
# Language models that the library lists with those that read images.
LISTED_WITH_IMAGES = ("mistral4",)
# The eager attention of this version adds linear biases that the mask has already.
ADDS_TWICE = ("falcon",)
# Whose routers correct the scores themselves.
PLAIN_RANKS = ("Kolibri1",)
# One sequence: a multiple of a square of patches.
TOKENS = (1, 8)
# Options of the config that show only beyond 8 positions: windows of 7 to 10, scales by position, groups of experts.
OF_LENGTH = ("sliding_window", "window_size", "attention_chunk_size", "original_max_position_embeddings")
OF_LENGTH += ("rope_parameters.original_max_position_embeddings", "index_topk", "topk_group")
# Models that need 24 positions: a fixed number of frames, gates that sum to almost 1, distances
# that are clamped, rotations of long inputs.
LONGER = ("whisper", "flex_olmo", "deberta_v2", "t5", "t5_gated", "umt5", "phi3_longrope", "minicpm3")
# Models that have two sequences, which must not meet.
TWICE = ("bert", "llama", "mamba2")
# Least distance between the scores of the last chosen and the first unchosen expert, so that rounding cannot choose.
LEAST_GAP = 1e-4

FAMILIES = ATTENTION_MODELS | ATTENTION_VARIANTS | MIXED_MODELS | TOWER_MODELS | RECURRENT_MODELS | ENCODER_MODELS
ENCODERS = ("t5_encoder",)


def class_of(fixture, config):
    if fixture in MASKED:
        return transformers.AutoModelForMaskedLM
    if fixture in DISCRIMINATORS:
        return transformers.AutoModelForPreTraining
    if fixture in ENCODERS:
        return transformers.AutoModelForTextEncoding
    if fixture == "whisper":
        return transformers.AutoModelForSpeechSeq2Seq
    if config.is_encoder_decoder:
        return transformers.AutoModelForSeq2SeqLM
    has_images = getattr(config, "vision_config", None) is not None or fixture in LISTED_WITH_IMAGES
    return transformers.AutoModelForImageTextToText if has_images else transformers.AutoModelForCausalLM


def built(fixture):
    """A model whose weights are not set."""
    config_class, says = FAMILIES[fixture]
    config = getattr(transformers, config_class)(**json.loads(json.dumps(says)))
    config.dtype = torch.float32
    return class_of(fixture, config).from_config(config)


def loaded(model, folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    found, report = type(model).from_pretrained(
        folder,
        config=config,
        dtype=torch.float32,
        attn_implementation="sdpa" if config.model_type in ADDS_TWICE and config.alibi else "eager",
        experts_implementation="eager",
        output_loading_info=True,
    )
    if report["missing_keys"] or report["unexpected_keys"] or report["mismatched_keys"]:
        raise SystemExit(f"{folder.name}: {report}")
    return found.eval()


def stacks_of(model):
    """The lists of layers: an encoder's or a tower's, then a decoder's, or the only one."""
    stacks = [getattr(getattr(model, "model", model), part, None) for part in ("encoder", "decoder")]
    if not isinstance(stacks[0], torch.nn.Module):
        tower = images.tower_of(model)
        decoder = layers_of(getattr(getattr(model, "model", model), "language_model", model) if tower else model)
        return [images.layers_of(tower), decoder] if tower else [decoder]
    return [stack.block if hasattr(stack, "block") else stack.layers for stack in stacks if stack is not None]


def layers_of(model):
    """The blocks: the first list of modules that is as long as the config says."""
    config = model.config.get_text_config()
    count = getattr(config, "num_layers", None) or config.num_hidden_layers
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == count:
            return module
    raise SystemExit(f"{type(model).__name__} has no list of layers")


def correction_of(router, args):
    """Returns the bias that affects only the choice: the router's own, or its second argument."""
    own = getattr(getattr(router, "moe_statics", router), "e_score_correction_bias", None)
    return own if own is not None else args[1] if len(args) > 1 else None


def logits_of(out):
    """The scores of the experts: a router returns them alone, or before the gates and the chosen experts, or behind."""
    if isinstance(out, torch.Tensor):
        return out
    if len(out) == 3:
        are_shares = torch.allclose(out[0].sum(dim=-1), torch.ones(len(out[0])))
        return out[0].log() if are_shares else out[0]
    return out[1]


def nearest(scores):
    """The least distance between two scores of a row."""
    ordered = scores.sort(dim=1).values
    return (ordered[:, 1:] - ordered[:, :-1]).min().item()


def as_features(hidden, shape):
    """Streams that the library stacks, behind the positions or before the batch, are side by side."""
    if hidden.dim() != 4:
        return hidden
    is_behind = tuple(hidden.shape[:2]) == tuple(shape)
    return (hidden if is_behind else hidden.permute(1, 2, 0, 3)).flatten(2)


class Watch:
    """Records the values between a model's layers and the results of its routers."""

    def __init__(self, model, shape):
        self.hidden, self.gap, self.shape = {}, float("inf"), shape
        first = 0
        for layers in stacks_of(model):
            ordered = images.as_positions(model, layers)
            for number, layer in enumerate(layers, first):
                layer.register_forward_pre_hook(self.entering(number, ordered), with_kwargs=True)
                for module in layer.modules():
                    if type(module).__name__.endswith(("Router", "V1Gate")):
                        module.register_forward_hook(self.routing)
            first += len(layers) + 1
            images.last_read(model, layers).register_forward_hook(self.leaving(first - 1, ordered))

    def entering(self, number, ordered):
        def hook(_, args, kwargs):
            hidden = args[0] if args else kwargs.get("hidden_states", kwargs.get("hidden_state"))
            self.hidden[number] = ordered(images.by_sequence(as_features(hidden, self.shape), self.shape)).detach().clone()

        return hook

    def leaving(self, number, ordered):
        def hook(_, args, out):
            hidden = as_features(out[0] if isinstance(out, tuple) else out, self.shape)
            self.hidden[number] = ordered(images.by_sequence(hidden, self.shape)).detach().clone()

        return hook

    def routing(self, router, args, out):
        logits = logits_of(out)
        if hasattr(router, "tid2eid"):  # words choose
            return
        correction = correction_of(router, args)
        is_softmax = hasattr(router, "moe_statics")
        is_plain = type(router).__name__.startswith(PLAIN_RANKS)
        score = getattr(router, "score_fn", torch.sigmoid)
        ranked = logits if is_plain else logits.softmax(dim=-1) if is_softmax else score(logits)
        scores = logits if correction is None else ranked + correction
        self.gap = min(self.gap, nearest(scores))
        if correction is not None and (getattr(router, "num_group", None) or 1) > 1:
            pairs = scores.reshape(len(scores), router.num_group, -1).topk(2, dim=2).values.sum(dim=2)
            self.gap = min(self.gap, nearest(pairs))


def is_of_length(config):
    says = config.to_dict()
    says |= {f"rope_parameters.{key}": value for key, value in (says.get("rope_parameters") or {}).items()}
    return any(says.get(key) for key in OF_LENGTH)


def shape_of(fixture, config):
    sequences, length = images.SHAPES.get(fixture, TOKENS)
    if fixture in LONGER:
        length = 24
    elif is_of_length(config):
        length = max(length, 12)
    return 2 if fixture in TWICE else sequences, length


def positions_of(length):
    """Positions whose values are kept: the last one depends on all, one has a short past and one half of it."""
    return [1, length // 2, length - 1]


def expected(fixture, model):
    random = np.random.default_rng(zlib.crc32(f"{fixture}/input_ids".encode()))
    shape = shape_of(fixture, model.config.get_text_config())
    input_ids = torch.from_numpy(random.integers(2 if fixture in WITHOUT_PADDING else 0, model.config.get_text_config().vocab_size, shape))
    watch = Watch(model, shape)
    options = {} if fixture in MASKED + DISCRIMINATORS + ENCODERS else {"use_cache": False}
    if model.config.is_encoder_decoder:
        words = getattr(model.config, "decoder_vocab_size", None) or model.config.vocab_size
        options["decoder_input_ids"] = torch.where(input_ids < words, input_ids, 0)
    given = {}
    if fixture == "whisper":
        frames = torch.from_numpy(random.standard_normal((shape[0], 2 * shape[1], model.config.num_mel_bins))).float()
        given = {"given": frames.reshape(*shape, -1)}
        options["input_features"] = frames.transpose(1, 2)
    else:
        options["input_ids"] = input_ids
    if images.tower_of(model) is not None:
        given = images.given(model, input_ids, random)
        options |= images.inputs(model, given["given"])
    with torch.no_grad():
        out = model(**options)
    logits = out.last_hidden_state if fixture in ENCODERS else out.logits
    if fixture in DISCRIMINATORS:
        logits = logits.unsqueeze(-1)
    if watch.gap < LEAST_GAP:
        raise SystemExit(f"{fixture}: two experts are within {watch.gap:.1e} of each other, and rounding could choose")
    tensors = {"input_ids": input_ids, "logits": logits, **given}
    tensors |= {f"hidden.{number}": value for number, value in watch.hidden.items()}
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor.double()).all():
            raise SystemExit(f"{fixture}: {name} is not finite")
    return {name: tensor.contiguous() for name, tensor in tensors.items()}, watch.gap


def of_words(fixture, model):
    """Runs a model with a tower on words alone."""
    random = np.random.default_rng(zlib.crc32(f"{fixture}/words".encode()))
    input_ids = torch.from_numpy(random.integers(0, model.config.get_text_config().vocab_size, images.SHAPES[fixture]))
    input_ids[input_ids == model.config.image_token_id] = 0
    with torch.no_grad():
        return {"input_ids": input_ids, "logits": model(input_ids=input_ids, use_cache=False).logits}


def transpose_experts(path):
    """Their kernels as [.., in, out]."""
    tensors = {
        name: tensor.transpose(-1, -2).contiguous() if ".experts." in name else tensor
        for name, tensor in load_file(path).items()
    }
    save_file(tensors, path, metadata={"format": "pt"})


def save(fixture, model, folder):
    """Writes a checkpoint under the published names that the library knows."""
    model.save_pretrained(folder, save_original_format=fixture not in HELD)
    (folder / "generation_config.json").unlink(missing_ok=True)


def publish(fixture, folder):
    """Brings a checkpoint into its published layout where the library does not write it."""
    if fixture in TRANSPOSED:
        transpose_experts(folder / "model.safetensors")
    if fixture in PUBLISHED:
        PUBLISHED[fixture](folder)


def write_expected(name, tensors):
    positions = positions_of(tensors["input_ids"].shape[1])
    kept = {"positions": torch.tensor(positions)}
    for name, tensor in tensors.items():
        kept[name] = tensor[:, positions].contiguous() if name.startswith(("hidden", "logits")) else tensor
    # One entry: safetensors writes several in any order.
    save_file(kept, EXPECTED / f"{name}.safetensors", metadata={"versions": VERSIONS})


def write(fixture, scratch):
    folder, numbered = scratch / fixture, scratch / f"{fixture} numbered"
    model = built(fixture)
    weights.fill(model, fixture)
    save(fixture, model, folder)
    tensors, gap = expected(fixture, loaded(model, folder))
    write_expected(fixture, tensors)
    if fixture in images.ALSO_WORDS:
        write_expected(f"{fixture}.words", of_words(fixture, loaded(model, folder)))
    ranges = weights.number(model)
    save(fixture, model, numbered)
    for one in (folder, numbered):
        publish(fixture, one)
    entries, checksum = weights.described(
        fixture, folder / "model.safetensors", numbered / "model.safetensors", ranges
    )
    config = json.loads((folder / "config.json").read_text())
    document = {"reference": VERSIONS, "crc32": checksum, "config": config, "tensors": entries}
    (MODELS / f"{fixture}.json").write_text(weights.text_of(document))
    rms = {
        name: round(float(t.double().pow(2).mean().sqrt()), 2) for name, t in tensors.items() if t.is_floating_point()
    }
    print(f"{fixture}: least router gap {gap:.1e}, rms {rms}")


def main(names):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    transformers.utils.logging.disable_progress_bar()
    for folder in (MODELS, EXPECTED):
        folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in names or FAMILIES:
            write(name, pathlib.Path(scratch))
    if not names:
        functions.write(HERE / "functions.json")


if __name__ == "__main__":
    main(sys.argv[1:])
