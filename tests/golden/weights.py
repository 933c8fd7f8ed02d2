"""Draws the weights of the small models, and describes them so that tests/golden/models.cc draws the same ones.

A tensor is mean + gain * normal / sqrt(fan_in). The normal numbers come from numpy's default generator, seeded with the
CRC-32 of "<model>/<name of the tensor in the library>". Checkpoints may hold other tensors than the library: experts
one by one, queries, keys and values joined, matrices transposed. `described` finds the origin of every element: it
saves the model a second time with its elements numbered instead of drawn.
"""

import json
import re
import zlib

import numpy as np
import torch
from safetensors import safe_open

# Factors of features or experts.
FACTORS = ("lambda_1", "lambda_2", "layer_scalar", "router.scale", "per_expert_scale", "correct_output_scale")
# Models whose norms multiply by 1 + weight, and the exceptions among them.
ONE_PLUS = ("gemma", "vaultgemma", "qwen3_next", "qwen3_5", "nemotron")
PLAIN_NORMS = ("gemma4", "gemma3n", "nemotron_h")
# Tensors that follow from the config alone.
COMPUTED = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")
# The constants of learned activations.
CONSTANTS = {"act_fn.beta": 0.7, "act_fn.eps": -0.3}
# The number of the first element: below it are values that no element has as its number.
FIRST_NUMBER = 1 << 20


def is_norm(name):
    name = name.replace("norm_attn_norm.attn.", "").replace("layernorm.mlp.", "").lower()
    return "norm" in name or ".ln_" in name or ".ln." in name


def distribution(model, name, shape):
    """(mean, gain, fan_in) that keep a layer's result near its input."""
    for ending, value in CONSTANTS.items():
        if name.endswith(ending):
            return value, 0.0, 1
    if is_norm(name):
        is_added_to_1 = model.startswith(ONE_PLUS) and not model.startswith(PLAIN_NORMS) and "linear_attn" not in name
        return 0.0 if name.endswith("bias") or is_added_to_1 else 1.0, 0.3, 1
    if name.endswith(FACTORS):
        return 1.0, 0.3, 1
    if "sinks" in name:
        return 0.0, 1.5, 1
    if "e_score_correction_bias" in name:
        return 0.0, 0.2, 1
    if len(shape) == 1 or name.endswith("proj_bias"):
        return 0.0, 0.3, 1
    if "embed" in name or "wte" in name or "wpe" in name:
        return 0.0, 0.7, 1
    if "x_proj" in name:  # wide, and its result is multiplied
        return 0.0, 0.6, shape[1]
    if "shared_transformer" in name:  # its input is twice as wide
        return 0.0, 0.4 if "adapter_list" in name else 0.6, min(shape[-2:])
    gain = 4.0 if model == "gpt_oss" and "gate_up" in name else 1.2  # 4: some of the clamps at 7 bite
    is_of_frames = len(shape) == 3 and model == "whisper"
    return 0.0, gain, shape[1] * shape[2] if is_of_frames else min(shape[-2:])


def generator(model, name):
    return np.random.default_rng(zlib.crc32(f"{model}/{name}".encode()))


def drawn(model, name, shape, experts):
    """The values of one tensor of the library."""
    if name.endswith("tid2eid"):  # some of the experts for every word
        return generator(model, name).random((shape[0], experts)).argsort(axis=1)[:, : shape[1]]
    mean, gain, fan_in = distribution(model, name, shape)
    return np.asarray(mean + gain * generator(model, name).standard_normal(shape) / np.sqrt(fan_in))


def fillable(module):
    """The tensors of a model whose values are ours to choose, by the library's names."""
    tied = {name for name in getattr(module, "_tied_weights_keys", None) or {}} if module.config.tie_word_embeddings else set()
    return {n: t for n, t in module.state_dict().items() if n not in tied and not n.endswith(COMPUTED)}


def fill(module, model):
    experts = getattr(module.config, "n_routed_experts", None)
    with torch.no_grad():
        for name, tensor in fillable(module).items():
            tensor.copy_(torch.from_numpy(drawn(model, name, tuple(tensor.shape), experts)))


def number(module):
    """Numbers the elements of all F32 tensors. Returns [(first number, name, shape)]."""
    ranges, first = [], FIRST_NUMBER
    with torch.no_grad():
        for name, tensor in fillable(module).items():
            if tensor.dtype != torch.float32:
                continue
            tensor.copy_(torch.arange(first, first + tensor.numel()).reshape(tensor.shape))
            ranges.append((first, name, tuple(tensor.shape)))
            first += tensor.numel()
    if first > 1 << 24:
        raise SystemExit("too many elements to number them in F32")
    return ranges


def rows_of(numbers):
    """Runs of rows that are one strided view: [(rows, first number, strides)]."""
    table = numbers.reshape(len(numbers), -1) if numbers.ndim else numbers.reshape(1, 1)
    runs, begin = [], 0
    while begin < len(table):
        end = begin + 1
        step = int(table[end, 0] - table[begin, 0]) if end < len(table) else 0
        while end < len(table) and (table[end] - table[end - 1] == step).all():
            end += 1
        inner = numbers[begin] if numbers.ndim else numbers
        strides = [step if end > begin + 1 else None]
        for axis in range(inner.ndim):
            flat = np.moveaxis(inner, axis, 0).reshape(inner.shape[axis], -1)[:, 0]
            strides.append(int(flat[1] - flat[0]) if len(flat) > 1 else None)
        runs.append((end - begin, int(table[begin, 0]), strides[: max(numbers.ndim, 1)]))
        begin = end
    return runs


def row_major(shape):
    return [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]


def part(model, tensor, shape, run, ranges):
    """One strided view of a tensor of the library; what is as usual is left out."""
    rows, first, strides = run
    origin, name, source_shape = next(r for r in reversed(ranges) if r[0] <= first)
    mean, gain, fan_in = distribution(model, name, source_shape)
    says = {"of": name} if name != tensor else {}
    says |= {"start": first - origin} if first != origin else {}
    usual = row_major(shape)
    if any(found not in (None, one) for found, one in zip(strides, usual)):
        says["strides"] = [0 if found is None else found for found in strides]
    says |= {"mean": mean} if mean else {}
    says |= {"gain": gain}
    says |= {"fan_in": int(fan_in)} if fan_in != 1 else {}
    return rows, says


def tensor_entry(model, name, value, numbers, ranges):
    shape = list(value.shape)
    if value.dtype != np.float32 or (numbers.reshape(-1) < FIRST_NUMBER).any():
        dtype = {np.dtype("float32"): "F32", np.dtype("int64"): "I64"}[value.dtype]
        return {"dtype": dtype, "shape": shape, "values": value.reshape(-1).tolist()}
    parts = [part(model, name, shape, run, ranges) for run in rows_of(numbers.astype(np.int64))]
    if len(parts) == 1:
        return {"shape": shape, **parts[0][1]}
    return {"shape": shape, "parts": [{"rows": rows, **says} for rows, says in parts]}


def in_file_order(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    names = [name for name in header if name != "__metadata__"]
    names.sort(key=lambda name: header[name]["data_offsets"])
    with safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in names}


def described(model, drawn_file, numbered_file, ranges):
    """The tensors of the checkpoint, in file order, and the CRC-32 of their data."""
    values, numbers = in_file_order(drawn_file), in_file_order(numbered_file)
    entries = {name: tensor_entry(model, name, value, numbers[name], ranges) for name, value in values.items()}
    checksum = 0
    for name, value in values.items():
        if regenerated(model, name, entries[name]).tobytes() != value.tobytes():
            raise SystemExit(f"{model}: {name} is not what its description says")
        checksum = zlib.crc32(value.tobytes(), checksum)
    return grouped(entries), checksum


def regenerated(model, name, entry):
    """A tensor from its description alone, as tests/golden/models.cc makes it."""
    if "values" in entry:
        return np.array(entry["values"], {"F32": np.float32, "I64": np.int64}[entry["dtype"]]).reshape(entry["shape"])
    shape, rows = entry["shape"], []
    for says in entry.get("parts", [entry]):
        of_part = [says.get("rows", shape[0]), *shape[1:]] if shape else []
        index = np.full(of_part, says.get("start", 0))
        for axis, stride in enumerate(says.get("strides", row_major(shape))):
            index += (stride * np.arange(of_part[axis])).reshape([-1] + [1] * (len(of_part) - axis - 1))
        normal = generator(model, says.get("of", name)).standard_normal(int(index.max()) + 1)[index]
        rows.append(says.get("mean", 0.0) + says["gain"] * normal / np.sqrt(says.get("fan_in", 1)))
    return np.concatenate(rows).astype(np.float32) if shape else rows[0].astype(np.float32)


def numbered_apart(text, number):
    return text.replace(f".{number}.", ".{}.", 1)


def grouped(entries):
    """Equal descriptions of layers in one: the name has the layers' numbers as {0,1}, and so has "of"."""
    groups = {}
    for name, says in entries.items():
        number = re.search(r"\.(\d+)\.", name)
        if number:
            pattern = numbered_apart(name, number[1])
            says = says | {"of": numbered_apart(says["of"], number[1])} if "of" in says else says
            groups.setdefault((pattern, json.dumps(says)), []).append(number[1])
        else:
            groups[name, json.dumps(says)] = []
    return {
        pattern.replace("{}", "{" + ",".join(numbers) + "}" if len(numbers) > 1 else "".join(numbers), 1): json.loads(
            says.replace("{}", numbers[0], 1) if len(numbers) == 1 else says
        )
        for (pattern, says), numbers in groups.items()
    }


def line(value):
    return json.dumps(value, separators=(",", ":"))


def text_of(document):
    """JSON with a line for every key of the config and every tensor."""
    lines = []
    for key, value in document.items():
        if isinstance(value, dict):
            inner = ",\n".join(f"  {line(k)}: {line(v)}" for k, v in value.items())
            lines.append(f' "{key}": {{\n{inner}\n }}')
        else:
            lines.append(f' "{key}": {line(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"
