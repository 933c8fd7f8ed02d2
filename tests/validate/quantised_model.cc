#include "tests/validate/quantised_model.h"

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/validate/made_model.h"

namespace shardtool::test {
namespace {

using nlohmann::json;

/// Random choices for one model, and its tensors.
struct Maker {
  Random& random;
  Tensors& tensors;
  i64 group = 16;                ///< inputs per group; -1: all
  std::vector<i64> block{8, 8};  ///< rows and columns per block

  i64 groups(i64 inputs) const { return group < 0 ? 1 : ceil_div(inputs, group); }

  /// Adds a tensor of elements whose bits are integers in [low, high].
  void add(const std::string& name, Dtype dtype, const Shape& shape, i64 low, i64 high) const {
    Tensor& tensor = tensors[name];
    tensor.spec = {name, dtype, shape};
    const auto width = static_cast<size_t>(bits(dtype) / 8);
    tensor.bytes.resize(static_cast<size_t>(element_count(shape).value()) * width);
    for (size_t at = 0; at < tensor.bytes.size(); at += width) {
      const i64 element = between(random, low, high);
      std::memcpy(tensor.bytes.data() + at, &element, width);
    }
  }
  void add_words(const std::string& name, const Shape& shape) const {
    add(name, Dtype::kI32, shape, 1, (i64{1} << 32) - 1);
  }
  void add_bytes(const std::string& name, const Shape& shape) const {
    add(name, Dtype::kU8, shape, 1, 255);
  }
  void add_fp8(const std::string& name, const Shape& shape) const {
    add(name, Dtype::kF8E4M3, shape, 0x28, 0x40);
  }
  /// Adds scales: F16 from 1/64 to 1/32, F32 from 2^-6 to 2^-5, FP8 near 1.
  void add_scales(const std::string& name, Dtype dtype, const Shape& shape) const {
    if (dtype == Dtype::kF16) return add(name, dtype, shape, 0x2400, 0x27ff);
    if (dtype == Dtype::kF32) return add(name, dtype, shape, 0x3c800000, 0x3cffffff);
    add(name, dtype, shape, 0x30, 0x3f);
  }
};

/// Stores the parts of a weight [out, in] with this name (without ".weight").
using Store = std::function<void(const Maker&, const std::string& name, i64 out, i64 in)>;

struct Form {
  i64 multiple = 2;  ///< all inputs and outputs are multiples of this
  Store store;
  std::function<json(const Maker&)> config;
};

json weights_group(json weights) {
  return {{"group_0", {{"weights", std::move(weights)}, {"targets", {"Linear"}}}}};
}

// FP8 with scales.

Form fp8(bool is_block, const std::string& suffix, std::function<Shape(i64 out)> scales = {}) {
  Form form;
  form.store = [=](const Maker& m, const std::string& name, i64 out, i64 in) {
    m.add_fp8(name + ".weight", {out, in});
    m.add_scales(
        name + suffix, Dtype::kF32,
        is_block ? Shape{ceil_div(out, m.block[0]), ceil_div(in, m.block[1])} : scales(out));
  };
  form.config = [=](const Maker& m) {
    json config = {{"quant_method", "fp8"}};
    if (is_block) config["weight_block_size"] = m.block;
    return config;
  };
  return form;
}

/// Scales by a strategy of compressed-tensors; integers have zero points, too.
Form scaled_by(const std::string& strategy, bool is_float = true) {
  Form form;
  form.store = [=](const Maker& m, const std::string& name, i64 out, i64 in) {
    const Shape scales = strategy == "tensor"    ? Shape{1}
                         : strategy == "channel" ? Shape{out, 1}
                         : strategy == "group"
                             ? Shape{out, m.groups(in)}
                             : Shape{ceil_div(out, m.block[0]), ceil_div(in, m.block[1])};
    if (is_float) {
      m.add_fp8(name + ".weight", {out, in});
      return m.add_scales(name + ".weight_scale", Dtype::kF32, scales);
    }
    m.add(name + ".weight", Dtype::kI8, {out, in}, 0, 255);
    m.add_scales(name + ".weight_scale", Dtype::kF16, scales);
    m.add(name + ".weight_zero_point", Dtype::kI8, scales, 0, 255);
  };
  form.config = [=](const Maker& m) {
    json weights = {{"num_bits", 8},
                    {"type", is_float ? "float" : "int"},
                    {"symmetric", is_float},
                    {"strategy", strategy}};
    if (strategy == "group") weights["group_size"] = m.group;
    if (strategy == "block") weights["block_structure"] = m.block;
    return json{{"quant_method", "compressed-tensors"},
                {"format", is_float ? "float-quantized" : "int-quantized"},
                {"config_groups", weights_group(std::move(weights))}};
  };
  return form;
}

// Words of four-bit or eight-bit codes.

Form gptq(i64 bits, bool is_v2, bool has_act_order) {
  const i64 per_word = 32 / bits;
  Form form;
  form.multiple = per_word;
  form.store = [=](const Maker& m, const std::string& name, i64 out, i64 in) {
    m.add_words(name + ".qweight", {in / per_word, out});
    m.add_words(name + ".qzeros", {m.groups(in), out / per_word});
    m.add_scales(name + ".scales", Dtype::kF16, {m.groups(in), out});
    m.add(name + ".g_idx", Dtype::kI32, {in}, 0, m.groups(in) - 1);
    Bytes& groups = m.tensors.at(name + ".g_idx").bytes;
    for (i64 i = 0; i < in && !has_act_order; ++i) {
      const auto group = static_cast<std::int32_t>(m.group < 0 ? 0 : i / m.group);
      std::memcpy(groups.data() + i * 4, &group, 4);
    }
  };
  form.config = [=](const Maker& m) {
    return json{{"quant_method", "gptq"},
                {"bits", bits},
                {"group_size", m.group},
                {"checkpoint_format", is_v2 ? "gptq_v2" : "gptq"},
                {"desc_act", has_act_order}};
  };
  return form;
}

Form awq() {
  constexpr i64 kPerWord = 8;
  Form form;
  form.multiple = kPerWord;
  form.store = [=](const Maker& m, const std::string& name, i64 out, i64 in) {
    m.add_words(name + ".qweight", {in, out / kPerWord});
    m.add_words(name + ".qzeros", {m.groups(in), out / kPerWord});
    m.add_scales(name + ".scales", Dtype::kF16, {m.groups(in), out});
  };
  form.config = [=](const Maker& m) {
    return json{{"quant_method", "awq"},
                {"bits", 4},
                {"group_size", m.group},
                {"version", "gemm"},
                {"zero_point", true}};
  };
  return form;
}

Form pack_quantized(i64 bits, bool has_zeros, const std::string& order = {}) {
  const i64 per_word = 32 / bits;
  Form form;
  form.multiple = per_word;
  form.store = [=](const Maker& m, const std::string& name, i64 out, i64 in) {
    m.add_words(name + ".weight_packed", {out, ceil_div(in, per_word)});
    m.add_scales(name + ".weight_scale", Dtype::kF16, {out, m.groups(in)});
    if (has_zeros)
      m.add_words(name + ".weight_zero_point", {ceil_div(out, per_word), m.groups(in)});
    m.add(name + ".weight_shape", Dtype::kI64, {2}, out, out);
    std::memcpy(m.tensors.at(name + ".weight_shape").bytes.data() + sizeof(i64), &in, sizeof(i64));
    if (!order.empty()) m.add(name + ".weight_g_idx", Dtype::kI32, {in}, 0, m.groups(in) - 1);
  };
  form.config = [=](const Maker& m) {
    json weights = {{"num_bits", bits},
                    {"type", "int"},
                    {"group_size", m.group},
                    {"symmetric", !has_zeros},
                    {"strategy", m.group < 0 ? "channel" : "group"}};
    if (!order.empty()) weights["actorder"] = order;
    return json{{"quant_method", "compressed-tensors"},
                {"format", "pack-quantized"},
                {"config_groups", weights_group(std::move(weights))}};
  };
  return form;
}

// Bytes with two codes each.

Form nvfp4() {
  Form form;
  form.store = [](const Maker& m, const std::string& name, i64 out, i64 in) {
    m.add_bytes(name + ".weight_packed", {out, in / 2});
    m.add_scales(name + ".weight_scale", Dtype::kF8E4M3, {out, ceil_div(in, i64{16})});
    m.add_scales(name + ".weight_global_scale", Dtype::kF32, {1});
  };
  form.config = [](const Maker&) {
    return json{
        {"quant_method", "compressed-tensors"},
        {"format", "nvfp4-pack-quantized"},
        {"config_groups", weights_group({{"num_bits", 4}, {"type", "float"}, {"group_size", 16}})}};
  };
  return form;
}

Form nvfp4_modelopt() {
  Form form;
  form.store = [](const Maker& m, const std::string& name, i64 out, i64 in) {
    m.add_bytes(name + ".weight", {out, in / 2});
    m.add_scales(name + ".weight_scale", Dtype::kF8E4M3, {out, ceil_div(in, i64{16})});
    m.add_scales(name + ".weight_scale_2", Dtype::kF32, {});
  };
  form.config = [](const Maker&) {
    return json{{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}};
  };
  return form;
}

const std::map<std::string, Form>& forms() {
  static const std::map<std::string, Form> kForms{
      {"fp8 block", fp8(true, ".weight_scale_inv")},
      {"fp8 block of its own name", fp8(true, ".scale")},
      {"fp8 tensor", fp8(false, ".weight_scale", [](i64) { return Shape{}; })},
      {"fp8 tensor of one element", fp8(false, ".weight_scale", [](i64) { return Shape{1}; })},
      {"fp8 row", fp8(false, ".weight_scale",
                      [](i64 out) {
                        return Shape{out, 1};
                      })},
      {"fp8 row vector", fp8(false, ".weight_scale", [](i64 out) { return Shape{out}; })},
      {"float-quantized tensor", scaled_by("tensor")},
      {"float-quantized channel", scaled_by("channel")},
      {"float-quantized group", scaled_by("group")},
      {"float-quantized block", scaled_by("block")},
      {"int-quantized tensor", scaled_by("tensor", false)},
      {"int-quantized channel", scaled_by("channel", false)},
      {"int-quantized group", scaled_by("group", false)},
      {"int-quantized block", scaled_by("block", false)},
      {"gptq", gptq(4, false, false)},
      {"gptq v2", gptq(4, true, false)},
      {"gptq 8 bits", gptq(8, false, false)},
      {"gptq act order", gptq(4, false, true)},
      {"gptq v2 act order", gptq(4, true, true)},
      {"awq", awq()},
      {"pack-quantized", pack_quantized(4, true)},
      {"pack-quantized symmetric", pack_quantized(4, false)},
      {"pack-quantized 8 bits", pack_quantized(8, true)},
      {"pack-quantized act order", pack_quantized(4, true, "group")},
      {"nvfp4", nvfp4()},
      {"nvfp4 of modelopt", nvfp4_modelopt()}};
  return kForms;
}

/// Random sizes for which weights have whole words.
ModelSizes any_sizes(Random& random, i64 tp, i64 multiple) {
  ModelSizes sizes;
  sizes.layers = 1;
  sizes.has_biases = false;
  sizes.has_qk_norm = between(random, 0, 1) == 0;
  sizes.seed = random();
  const i64 even = std::lcm(multiple, i64{2});
  sizes.head_dim = even * between(random, 1, std::max<i64>(2, 16 / even));
  sizes.kv_heads = between(random, 0, 2) > 0 ? tp * between(random, 1, 2) : between(random, 1, 4);
  sizes.heads = sizes.kv_heads * between(random, 1, 2);
  sizes.hidden = even * between(random, 2, 48 / even);
  sizes.mlp = even * between(random, 2, 96 / even);
  sizes.vocab = between(random, 8, 40);
  return sizes;
}

QuantisedModel of_sizes(const Form& form, const ModelSizes& sizes, Random& random) {
  QuantisedModel model;
  Maker maker{random, model.tensors};
  maker.group = one_of<i64>(random, {8, 8, 16, 24, 32, -1});
  for (i64& extent : maker.block) extent = one_of<i64>(random, {2, 4, 4, 6, 8, 16, 128});
  for (const auto& [name, tensor] : made_tensors(sizes)) {
    constexpr std::string_view kProjection = "_proj.weight";
    if (!name.ends_with(kProjection)) {
      model.tensors[name] = tensor;
      continue;
    }
    const Shape& shape = tensor.spec.shape;
    form.store(maker, name.substr(0, name.rfind('.')), shape[0], shape[1]);
  }
  json config = json::parse(made_config(sizes));
  config["quantization_config"] = form.config(maker);
  model.config = config.dump();
  return model;
}

QuantisedModel of_form(const Form& form, i64 tp, Random& random) {
  return of_sizes(form, any_sizes(random, tp, form.multiple), random);
}

// MXFP4: all experts of gpt-oss in one tensor.

QuantisedModel mxfp4(i64 tp, Random& random) {
  constexpr i64 kMxBlock = 32;
  const i64 hidden = kMxBlock * between(random, 1, 2);
  const i64 mlp = kMxBlock * between(random, 1, 5);
  const i64 experts = between(random, 1, 3);
  const i64 head_dim = 2 * between(random, 1, 4);
  const i64 kv_heads = between(random, 0, 2) > 0 ? tp : between(random, 1, 4);
  const i64 heads = kv_heads * between(random, 1, 2);
  const i64 vocab = between(random, 8, 40);
  QuantisedModel model;
  const Maker m{random, model.tensors};
  const auto add = [&](const std::string& name, const Shape& shape) {
    m.add_scales(name, Dtype::kF32, shape);
  };
  const auto linear = [&](const std::string& name, i64 out, i64 in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  };
  const std::string layer = "model.layers.0.";
  add("model.embed_tokens.weight", {vocab, hidden});
  add("lm_head.weight", {vocab, hidden});
  for (const char* const norm : {"model.norm", "model.layers.0.input_layernorm",
                                 "model.layers.0.post_attention_layernorm"}) {
    add(fmt::format("{}.weight", norm), {hidden});
  }
  linear(layer + "self_attn.q_proj", heads * head_dim, hidden);
  linear(layer + "self_attn.k_proj", kv_heads * head_dim, hidden);
  linear(layer + "self_attn.v_proj", kv_heads * head_dim, hidden);
  linear(layer + "self_attn.o_proj", hidden, heads * head_dim);
  add(layer + "self_attn.sinks", {heads});
  linear(layer + "mlp.router", experts, hidden);
  const auto stack = [&](const std::string& name, i64 out, i64 in) {
    m.add_bytes(name + "_blocks", {experts, out, in / kMxBlock, kMxBlock / 2});
    m.add(name + "_scales", Dtype::kU8, {experts, out, in / kMxBlock}, 118, 124);
    add(name + "_bias", {experts, out});
  };
  stack(layer + "mlp.experts.gate_up_proj", 2 * mlp, hidden);
  stack(layer + "mlp.experts.down_proj", hidden, mlp);
  model.config = json{{"architectures", {"GptOssForCausalLM"}},
                      {"model_type", "gpt_oss"},
                      {"hidden_size", hidden},
                      {"num_attention_heads", heads},
                      {"num_key_value_heads", kv_heads},
                      {"head_dim", head_dim},
                      {"intermediate_size", mlp},
                      {"num_hidden_layers", 1},
                      {"vocab_size", vocab},
                      {"num_local_experts", experts},
                      {"num_experts_per_tok", 1},
                      {"sliding_window", 128},
                      {"layer_types", {"full_attention"}},
                      {"rms_norm_eps", 1e-5},
                      {"rope_theta", 1e4},
                      {"tie_word_embeddings", false},
                      {"attention_bias", true},
                      {"quantization_config", {{"quant_method", "mxfp4"}}}}
                     .dump();
  return model;
}

}  // namespace

i64 between(Random& random, i64 low, i64 high) {
  return std::uniform_int_distribution<i64>(low, high)(random);
}

const std::vector<std::string>& quantised_forms() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names{"mxfp4"};
    for (const auto& [name, form] : forms()) names.push_back(name);
    return names;
  }();
  return kNames;
}

QuantisedModel padded_model(const std::string& form, i64 tp, Random& random) {
  const Form& of = forms().at(form);
  ModelSizes sizes = any_sizes(random, tp, of.multiple);
  do {
    sizes.mlp = between(random, 2 * of.multiple, 12 * of.multiple);
  } while (sizes.mlp % of.multiple == 0);
  return of_sizes(of, sizes, random);
}

QuantisedModel quantised_model(const std::string& form, i64 tp, Random& random) {
  return form == "mxfp4" ? mxfp4(tp, random) : of_form(forms().at(form), tp, random);
}

}  // namespace shardtool::test
