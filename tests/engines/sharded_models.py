"""Small models for the layouts of engines: configurations, and weights drawn from the tensors' names.

tests/layouts/golden has what the engines make of them; the C++ tests draw the same weights
(tests/support/checkpoint_files.h, distinct_tensor).
"""
import json
import pathlib
import re
import struct

BASE = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_key_value_heads": 4, "vocab_size": 300, "max_position_embeddings": 128,
}

GEMMA3 = {
    "text_config": {"head_dim": 16}, "mm_tokens_per_image": 4,
    "vision_config": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
                      "image_size": 16, "patch_size": 4, "vision_use_head": False}}
QWEN_VL = {
    "text_config": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}},
    "vision_config": {"hidden_size": 64, "intermediate_size": 128, "depth": 2, "num_heads": 4, "out_hidden_size": 64,
                      "fullatt_block_indexes": [1]}}
QWEN3_VL = {
    "text_config": {**QWEN_VL["text_config"], "head_dim": 8},
    "vision_config": {"hidden_size": 64, "intermediate_size": 128, "depth": 2, "num_heads": 4, "out_hidden_size": 64,
                      "num_position_embeddings": 16, "deepstack_visual_indexes": [0]}}
WIDE = {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 128}
FP8 = {"quant_method": "fp8", "fmt": "e4m3"}
BLOCKS = {**FP8, "weight_block_size": [128, 128], "activation_scheme": "dynamic"}
EIGHT_BITS = {"num_bits": 8, "symmetric": True, "observer": "minmax", "actorder": None}


def compressed(form, weights, inputs):
    """Returns quantization_config of compressed-tensors."""
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs, "output_activations": None}
    return {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed", "ignore": ["lm_head"],
            "config_groups": {"group_0": group}, "kv_cache_scheme": None}


def eight_bits(kind):
    return ({**EIGHT_BITS, "type": kind, "strategy": "channel", "dynamic": False},
            {**EIGHT_BITS, "type": kind, "strategy": "token", "dynamic": True})


FOUR_BITS = {"num_bits": 4, "type": "float", "symmetric": True, "strategy": "tensor_group", "group_size": 16}

EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2}
SHARED = {**EXPERTS, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 64}
LOCAL = {"num_local_experts": 8, "num_experts_per_tok": 2}
ROUTED = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 1,
          "first_k_dense_replace": 1}
WIDE_LATENT = {
    "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4,
    "num_key_value_heads": 4, "moe_intermediate_size": 256, "n_routed_experts": 4, "n_group": 2,
    "topk_group": 1, "num_experts_per_tok": 2, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "q_lora_rank": 128, "kv_lora_rank": 128, "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128, "v_head_dim": 128}
ERNIE = {"moe_intermediate_size": 32, "moe_num_experts": 8, "moe_k": 2, "moe_num_shared_experts": 1,
         "moe_layer_start_index": 1, "num_hidden_layers": 3}
# What MiniMax M2's config.json has, and the class of transformers does not.
ROUTING = {"scoring_func": "sigmoid", "use_routing_bias": True, "rotary_dim": 8}
LATENT = {**ROUTED, "num_key_value_heads": 8, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16,
          "v_head_dim": 16}

# name: (class of the configuration, its arguments, keys that vLLM reads and transformers omits)
MODELS = {
    "llama": ("LlamaConfig", {}, {}),
    "llama_five_layers": ("LlamaConfig", {"num_hidden_layers": 5}, {}),
    "llama_tied": ("LlamaConfig", {"tie_word_embeddings": True}, {}),
    "llama_fp8": ("LlamaConfig", WIDE, {"quantization_config": BLOCKS}),
    "llama_fp8_tensor": ("LlamaConfig", {}, {"quantization_config": {**FP8, "activation_scheme": "static"}}),
    "llama_float_quantized": ("LlamaConfig", {}, {
        "quantization_config": compressed("float-quantized", *eight_bits("float"))}),
    "llama_int_quantized": ("LlamaConfig", {}, {"quantization_config": compressed("int-quantized", *eight_bits("int"))}),
    "llama_nvfp4": ("LlamaConfig", {}, {
        "quantization_config": compressed("nvfp4-pack-quantized", {**FOUR_BITS, "dynamic": False},
                                          {**FOUR_BITS, "dynamic": "local"})}),
    "llama_modelopt_fp8": ("LlamaConfig", {}, {
        "quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]}}),
    "llama_modelopt_nvfp4": ("LlamaConfig", {}, {
        "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "ignore": ["lm_head"],
                                "kv_cache_quant_algo": None}}),
    "qwen2": ("Qwen2Config", {}, {}),
    "qwen2_tied": ("Qwen2Config", {"tie_word_embeddings": True}, {}),
    "qwen2_float_quantized": ("Qwen2Config", {}, {
        "quantization_config": compressed("float-quantized", *eight_bits("float"))}),
    "qwen3": ("Qwen3Config", {"head_dim": 8}, {}),
    "qwen3_tied": ("Qwen3Config", {"head_dim": 8, "tie_word_embeddings": True}, {}),
    "qwen3_fp8": ("Qwen3Config", WIDE, {"quantization_config": BLOCKS}),
    "qwen3_moe": ("Qwen3MoeConfig", {"head_dim": 8, "moe_intermediate_size": 32, "num_experts": 8,
                                     "num_experts_per_tok": 2}, {}),
    "qwen3_moe_fp8": ("Qwen3MoeConfig", {**WIDE, "moe_intermediate_size": 256, "num_experts": 4,
                                         "num_experts_per_tok": 2}, {
        "quantization_config": {**BLOCKS, "modules_to_not_convert": [
            "lm_head", "model.layers.0.mlp.gate", "model.layers.1.mlp.gate"]}}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4, "num_experts_per_tok": 2}, {}),
    "mistral": ("MistralConfig", {}, {}),
    "mistral_tied": ("MistralConfig", {"tie_word_embeddings": True}, {}),
    "mistral_fp8_tensor": ("MistralConfig", {}, {"quantization_config": {**FP8, "activation_scheme": "static"}}),
    "ministral3": ("Ministral3Config", {"head_dim": 16, "pad_token_id": None}, {}),
    "ministral3_tied": ("Ministral3Config", {"head_dim": 16, "pad_token_id": None, "tie_word_embeddings": True}, {}),
    "phi3": ("Phi3Config", {"pad_token_id": None}, {}),
    "phi3_tied": ("Phi3Config", {"pad_token_id": None, "tie_word_embeddings": True}, {}),
    "granite": ("GraniteConfig", {"attention_bias": True}, {}),
    "granite_tied": ("GraniteConfig", {"tie_word_embeddings": True}, {}),
    "glm": ("GlmConfig", {"head_dim": 16, "pad_token_id": None}, {}),
    "glm4": ("Glm4Config", {"head_dim": 16, "pad_token_id": None, "attention_bias": False}, {}),
    "gemma": ("GemmaConfig", {"head_dim": 16}, {}),
    "gemma2": ("Gemma2Config", {"head_dim": 16}, {}),
    "gemma3_text": ("Gemma3TextConfig", {"head_dim": 16}, {}),
    "cohere": ("CohereConfig", {"use_qk_norm": True}, {}),
    "cohere2": ("Cohere2Config", {}, {}),
    "olmo2": ("Olmo2Config", {}, {}),
    "olmo3": ("Olmo3Config", {}, {}),
    "smollm3": ("SmolLM3Config", {"pad_token_id": None}, {}),
    "seed_oss": ("SeedOssConfig", {"head_dim": 16}, {}),
    "starcoder2": ("Starcoder2Config", {}, {}),
    "exaone4": ("Exaone4Config", {"layer_types": ["sliding_attention", "full_attention"]}, {}),
    "exaone4_tied": ("Exaone4Config", {"layer_types": ["full_attention", "full_attention"], "tie_word_embeddings": True}, {}),
    "gemma3": ("Gemma3Config", GEMMA3, {}),
    "gemma3_held": ("Gemma3Config", GEMMA3, {}),
    "qwen2_5_vl": ("Qwen2_5_VLConfig", QWEN_VL, {}),
    "qwen2_5_vl_held": ("Qwen2_5_VLConfig", {**QWEN_VL, "tie_word_embeddings": True}, {}),
    "qwen3_vl": ("Qwen3VLConfig", QWEN3_VL, {}),
    "qwen3_vl_tied": ("Qwen3VLConfig", {**QWEN3_VL, "tie_word_embeddings": True}, {}),
    "gpt_oss_mxfp4": ("GptOssConfig", {"head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2,
                                       "sliding_window": 16}, {
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}}),
    "deepseek_v3": ("DeepseekV3Config", {
        "num_key_value_heads": 8, "moe_intermediate_size": 32, "n_routed_experts": 8, "n_group": 2,
        "topk_group": 1, "num_experts_per_tok": 2, "n_shared_experts": 1,
        "first_k_dense_replace": 1, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 16, "v_head_dim": 16}, {"topk_method": "noaux_tc", "num_nextn_predict_layers": 1}),
    "deepseek_v3_fp8": ("DeepseekV3Config", WIDE_LATENT, {"topk_method": "noaux_tc", "quantization_config": BLOCKS}),
    "qwen2_moe": ("Qwen2MoeConfig", SHARED, {}),
    "qwen2_moe_dense_layer": ("Qwen2MoeConfig", {**SHARED, "num_hidden_layers": 3, "mlp_only_layers": [1]}, {}),
    "deepseek_v2": ("DeepseekV2Config", {**LATENT, "q_lora_rank": 24, "n_group": 2, "topk_group": 1}, {}),
    "deepseek_v2_whole_queries": ("DeepseekV2Config", {**LATENT, "q_lora_rank": None}, {}),
    "deepseek_v3_whole_queries": ("DeepseekV3Config", {**LATENT, "q_lora_rank": None, "n_group": 1, "topk_group": 1}, {
        "topk_method": "noaux_tc"}),
    "kimi_k2": ("DeepseekV3Config", {**LATENT, "q_lora_rank": 24, "n_group": 1, "topk_group": 1}, {
        "topk_method": "noaux_tc", "model_type": "kimi_k2"}),
    "glm4_moe": ("Glm4MoeConfig", {**ROUTED, "head_dim": 8, "num_hidden_layers": 4, "use_qk_norm": True,
                                   "attention_bias": True}, {}),
    "olmoe": ("OlmoeConfig", EXPERTS, {}),
    "minimax_m2": ("MiniMaxM2Config", {**LOCAL, "head_dim": 16}, ROUTING),
    "minimax_m2_fp8": ("MiniMaxM2Config", {**WIDE, "num_local_experts": 4, "num_experts_per_tok": 2}, {
        **ROUTING, "quantization_config": {**BLOCKS, "modules_to_not_convert": [
            "gate", "e_score_correction_bias", "lm_head"]}}),
    "ernie4_5_moe": ("Ernie4_5_MoeConfig", {**ERNIE, "tie_word_embeddings": False}, {}),
    "ernie4_5_moe_tied": ("Ernie4_5_MoeConfig", {**ERNIE, "tie_word_embeddings": True}, {}),
    "granitemoe": ("GraniteMoeConfig", LOCAL, {}),
    "granitemoe_tied": ("GraniteMoeConfig", {**LOCAL, "tie_word_embeddings": True}, {}),
    "glm4_moe_lite": ("Glm4MoeLiteConfig", {**LATENT, "q_lora_rank": 24, "num_hidden_layers": 3}, {
        "num_nextn_predict_layers": 1}),
    "qwen3_next": ("Qwen3NextConfig", {
        **EXPERTS, "head_dim": 16, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
        "linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
        "num_hidden_layers": 4, "layer_types": ["linear_attention", "full_attention"] * 2}, {}),
}
# Tensors of layers that predict further tokens. transformers does not save them, and the engines do not load them.
FURTHER = {"enorm.weight": [64], "hnorm.weight": [64], "eh_proj.weight": [64, 128], "embed_tokens.weight": [300, 64],
           "shared_head.norm.weight": [64]}
FURTHER_TENSORS = {
    "deepseek_v3": {f"model.layers.2.{name}": shape for name, shape in FURTHER.items()},
    "glm4_moe": {f"model.layers.4.{name}": shape for name, shape in FURTHER.items()},
    "glm4_moe_lite": {f"model.layers.3.{name}": shape for name, shape in FURTHER.items()},
    "ernie4_5_moe": {"model.mtp_block.0.input_layernorm.weight": [64], "model.mtp_emb_norm.0.weight": [64],
                     "model.mtp_hidden_norm.0.weight": [64], "model.mtp_linear_proj.0.weight": [64, 128]},
    "qwen3_next": {"mtp.fc.weight": [64, 128], "mtp.norm.weight": [64], "mtp.layers.0.input_layernorm.weight": [64]},
}
# Begins of the names that transformers 5 writes, and those of checkpoints that were published, or that transformers 4 wrote.
RENAMED = {
    "gemma3": {"vision_tower.": "vision_tower.vision_model."},
    "gemma3_held": {"language_model.model.": "model.language_model.", "vision_tower.": "model.vision_tower.vision_model.",
                    "multi_modal_projector.": "model.multi_modal_projector."},
    "qwen2_5_vl_held": {"model.": "model.language_model.", "visual.": "model.visual."},
}
# Ends of the names that vLLM holds in F32 in any case. It converts those that a file has in BF16.
HELD_WIDE = {"glm4_moe": (".gate.weight",), "glm4_moe_lite": (".gate.weight",), "minimax_m2": (".gate.weight",),
             "minimax_m2_fp8": (".gate.weight",), "qwen3_next": (".A_log",)}
FILE_BYTES = 40_000  # of the files that engines save: several per rank
WIDTHS = {"BF16": 2, "F32": 4, "F8_E4M3": 1, "I8": 1, "U8": 1}
# Tensors in place of a weight of rows x columns, by the form that quantization_config says.
FORMS = {
    "fp8/block": lambda r, c: {"weight": ["F8_E4M3", [r, c]], "weight_scale_inv": ["F32", [-(-r // 128), -(-c // 128)]]},
    "fp8/tensor": lambda r, c: {"weight": ["F8_E4M3", [r, c]], "weight_scale": ["F32", []], "input_scale": ["F32", []]},
    "float-quantized": lambda r, c: {"weight": ["F8_E4M3", [r, c]], "weight_scale": ["F32", [r, 1]]},
    "int-quantized": lambda r, c: {"weight": ["I8", [r, c]], "weight_scale": ["F32", [r, 1]]},
    "nvfp4-pack-quantized": lambda r, c: {
        "weight_packed": ["U8", [r, c // 2]], "weight_scale": ["F8_E4M3", [r, c // 16]],
        "weight_global_scale": ["F32", [1]], "input_global_scale": ["F32", [1]]},
    "NVFP4": lambda r, c: {"weight": ["U8", [r, c // 2]], "weight_scale": ["F8_E4M3", [r, c // 16]],
                           "weight_scale_2": ["F32", []], "input_scale": ["F32", []]},
}


def distinct_bytes(name, size):
    """Returns bytes that the name determines: FNV-1a, then a linear congruence."""
    mask = (1 << 64) - 1
    state = 14695981039346656037
    for character in name.encode():
        state = ((state ^ character) * 1099511628211) & mask
    out = bytearray(size)
    for i in range(size):
        state = (state * 6364136223846793005 + 1442695040888963407) & mask
        out[i] = state >> 56
    return bytes(out)


def form_of(quantization):
    if quantization["quant_method"] == "fp8":
        return "fp8/block" if "weight_block_size" in quantization else "fp8/tensor"
    algorithm = quantization.get("format") or quantization.get("quant_algo")
    return "fp8/tensor" if algorithm == "FP8" else algorithm


def quantise(tensors, quantization):
    """Replaces the projections by the tensors of their quantised form."""
    if quantization["quant_method"] == "mxfp4":
        for name in [name for name in tensors if name.endswith("experts.gate_up_proj") or name.endswith("experts.down_proj")]:
            experts, columns, rows = tensors.pop(name)[1]
            tensors[name + "_blocks"] = ["U8", [experts, rows, columns // 32, 16]]
            tensors[name + "_scales"] = ["U8", [experts, rows, columns // 32]]
        return
    form = FORMS[form_of(quantization)]
    for name in [name for name in tensors if re.search(r"(_proj|_with_mqa|w[123])\.weight$", name)]:
        shape = tensors.pop(name)[1]
        for suffix, row in form(*shape).items():
            tensors[name.removesuffix("weight") + suffix] = row


def rename(kind, tensor):
    for written, other in RENAMED.get(kind, {}).items():
        if tensor.startswith(written):
            return other + tensor.removeprefix(written)
    return tensor


def describe(kind):
    """Returns config.json and {tensor: (dtype, shape)} of a model as transformers saves it."""
    import tempfile

    import torch
    import transformers
    from safetensors import safe_open

    name, arguments, extra = MODELS[kind]
    if "vision_config" in arguments:
        arguments = {**arguments, "text_config": {**BASE, **arguments["text_config"]}}
        model_class = transformers.AutoModelForImageTextToText
    else:
        arguments = {**BASE, **arguments}
        model_class = transformers.AutoModelForCausalLM
    model = model_class.from_config(getattr(transformers, name)(**arguments), dtype=torch.bfloat16)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        text = json.loads(pathlib.Path(folder, "config.json").read_text())
        with safe_open(pathlib.Path(folder, "model.safetensors"), "pt") as file:
            tensors = {}
            for tensor in sorted(file.keys()):
                part = file.get_slice(tensor)
                # As published: transformers converts it with the rest.
                wide = ("e_score_correction_bias", *HELD_WIDE.get(kind, ()))
                dtype = "F32" if tensor.endswith(wide) else part.get_dtype()
                tensors[rename(kind, tensor)] = [dtype, part.get_shape()]
    tensors.update({name: ["BF16", shape] for name, shape in FURTHER_TENSORS.get(kind, {}).items()})
    if "quantization_config" in extra:
        quantise(tensors, extra["quantization_config"])
    text.update(extra)
    text.pop("transformers_version", None)
    return text, tensors


def write(folder, config, tensors):
    """Writes config.json and model.safetensors."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    header, data = {}, []
    offset = 0
    for name, (dtype, shape) in sorted(tensors.items()):
        size = WIDTHS[dtype]
        for extent in shape:
            size *= extent
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        data.append(distinct_bytes(name, size))
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(data)


def read(path):
    """Returns {tensor: [dtype, shape, first half of XXH3-128]} of a safetensors file."""
    import xxhash

    data = pathlib.Path(path).read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    return {name: [row["dtype"], row["shape"], xxhash.xxh3_128_hexdigest(
        data[begin + row["data_offsets"][0]:begin + row["data_offsets"][1]])[:16]] for name, row in header.items()}


def rows(state):
    """Returns the rows of torch's tensors, as read does of a file's."""
    import torch
    import xxhash

    dtypes = {torch.bfloat16: "BF16", torch.float32: "F32", torch.float8_e4m3fn: "F8_E4M3", torch.int8: "I8",
              torch.uint8: "U8"}
    return {name: [dtypes[value.dtype], list(value.shape), xxhash.xxh3_128_hexdigest(
        value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())[:16]] for name, value in state.items()}
