#include "tests/validate/weight_reader.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "kernels/decode/decode.h"

namespace shardtool::test {

std::vector<double> doubles_of(const Tensor& tensor) {
  const i64 n = element_count(tensor.spec.shape).value();
  std::vector<double> values(static_cast<size_t>(n));
  kernels::to_doubles(tensor.spec.dtype, reinterpret_cast<const std::byte*>(tensor.bytes.data()), n,
                      values.data());
  return values;
}
namespace {

using nlohmann::json;

/// A reader of one weight, element by element, from the definitions of the formats.
struct Reader {
  const Tensors& tensors;
  json quantization;
  std::string base;  ///< the weight's name without ".weight"

  const Tensor* find(const std::string& suffix) const {
    const auto found = tensors.find(base + suffix);
    return found == tensors.end() ? nullptr : &found->second;
  }
  double number(const Tensor& tensor, i64 at) const {
    const Tensor one{{"", tensor.spec.dtype, {1}},
                     {tensor.bytes.begin() + at * bits(tensor.spec.dtype) / 8,
                      tensor.bytes.begin() + (at + 1) * bits(tensor.spec.dtype) / 8}};
    return doubles_of(one).front();
  }
  double only(const std::string& suffix) const { return number(*find(suffix), 0); }
  /// Bits [at, at + n) of row-major little-endian words.
  static i64 field(const Tensor& tensor, i64 word, i64 low, i64 n) {
    const i64 width = bits(tensor.spec.dtype) / 8;
    std::uint64_t value = 0;
    std::memcpy(&value, tensor.bytes.data() + word * width, static_cast<size_t>(width));
    return static_cast<i64>(value >> low & ((1U << n) - 1));
  }
  i64 group_of(i64 input, i64 size, const char* order) const {
    if (const Tensor* said = find(order)) return static_cast<i64>(number(*said, input));
    return size < 0 ? 0 : input / size;
  }
  static double e2m1(i64 code) {
    constexpr double kSizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return (code & 8) != 0 ? -kSizes[code & 7] : kSizes[code & 7];
  }

  /// 8-bit numbers with scales, and zero points of the same shape.
  double scaled(const Tensor& weight, i64 out, i64 in) const {
    const i64 columns = weight.spec.shape[1];
    const Tensor* zeros = find(".weight_zero_point");
    const auto weight_of = [&](const Tensor& scales, i64 at) {
      const double zero = zeros == nullptr ? 0 : number(*zeros, at);
      return (number(weight, out * columns + in) - zero) * number(scales, at);
    };
    for (const char* suffix : {".weight_scale_inv", ".weight_scale", ".scale"}) {
      const Tensor* scales = find(suffix);
      if (scales == nullptr) continue;
      const Shape& shape = scales->spec.shape;
      if (element_count(shape) == 1) return weight_of(*scales, 0);
      if (shape.size() == 1) return weight_of(*scales, out);
      const i64 row = shape[0] == 1 ? 0 : out / block(0, weight.spec.shape[0], shape[0]);
      const i64 column = shape[1] == 1 ? 0 : in / block(1, columns, shape[1]);
      return weight_of(*scales, row * shape[1] + column);
    }
    FAIL("no scales");
    return 0;
  }
  i64 block(size_t axis, i64 extent, i64 scales) const {
    if (scales == extent) return 1;
    if (quantization.contains("weight_block_size")) return quantization["weight_block_size"][axis];
    const json& weights = quantization["config_groups"]["group_0"]["weights"];
    return weights.contains("block_structure") ? i64{weights["block_structure"][axis]}
                                               : i64{weights["group_size"]};
  }

  double gptq(i64 out, i64 in) const {
    const i64 n = quantization["bits"];
    const i64 per = 32 / n;
    const Tensor& words = *find(".qweight");
    const Tensor& zeros = *find(".qzeros");
    const Tensor& scales = *find(".scales");
    const i64 outs = scales.spec.shape[1];
    const i64 group = group_of(in, quantization["group_size"], ".g_idx");
    const i64 less = quantization["checkpoint_format"] == "gptq" ? 1 : 0;
    const i64 code = field(words, in / per * outs + out, in % per * n, n);
    const i64 zero = field(zeros, group * (outs / per) + out / per, out % per * n, n) + less;
    return static_cast<double>(code - zero) * number(scales, group * outs + out);
  }

  double awq(i64 out, i64 in) const {
    constexpr i64 kPlaces[] = {0, 4, 1, 5, 2, 6, 3, 7};
    const Tensor& scales = *find(".scales");
    const i64 outs = scales.spec.shape[1];
    const i64 group = group_of(in, quantization["group_size"], ".none");
    const i64 low = kPlaces[out % 8] * 4;
    const i64 code = field(*find(".qweight"), in * (outs / 8) + out / 8, low, 4);
    const i64 zero = field(*find(".qzeros"), group * (outs / 8) + out / 8, low, 4);
    return static_cast<double>(code - zero) * number(scales, group * outs + out);
  }

  double pack_quantized(i64 out, i64 in) const {
    const json& weights = quantization["config_groups"]["group_0"]["weights"];
    const i64 n = weights["num_bits"];
    const i64 per = 32 / n;
    const Tensor& words = *find(".weight_packed");
    const Tensor& scales = *find(".weight_scale");
    const i64 groups = scales.spec.shape[1];
    const i64 group = group_of(in, weights["group_size"], ".weight_g_idx");
    const i64 code = field(words, out * words.spec.shape[1] + in / per, in % per * n, n);
    const Tensor* zeros = find(".weight_zero_point");
    const i64 zero = zeros == nullptr ? i64{1} << (n - 1)
                                      : field(*zeros, out / per * groups + group, out % per * n, n);
    return static_cast<double>(code - zero) * number(scales, out * groups + group);
  }

  double nvfp4(const Tensor& bytes, i64 out, i64 in) const {
    const Tensor& scales = *find(".weight_scale");
    const double scale = number(scales, out * scales.spec.shape[1] + in / 16);
    const double code = e2m1(field(bytes, out * bytes.spec.shape[1] + in / 2, in % 2 * 4, 4));
    const Tensor* factor = find(".weight_scale_2");
    return code *
           (factor == nullptr ? scale / only(".weight_global_scale") : scale * number(*factor, 0));
  }
};
}  // namespace

Tensors read_weights(const QuantisedModel& model) {
  const json config = json::parse(model.config);
  const json& quantization = config["quantization_config"];
  const std::string method = quantization["quant_method"];
  Tensors weights;
  const auto add = [&](const std::string& name, const Shape& shape,
                       const std::function<double(i64 row, i64 column)>& value) {
    std::vector<double> values;
    for (i64 r = 0; r < shape[shape.size() - 2] * (shape.size() > 2 ? shape[0] : 1); ++r) {
      for (i64 c = 0; c < shape.back(); ++c) values.push_back(value(r, c));
    }
    Tensor& tensor = weights[name];
    tensor.spec = {name, Dtype::kF64, shape};
    tensor.bytes.resize(values.size() * sizeof(double));
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  };
  const auto base_of = [](const std::string& name, const std::string& end) {
    return name.ends_with(end) ? name.substr(0, name.size() - end.size()) : std::string();
  };
  for (const auto& [name, tensor] : model.tensors) {
    const Shape& shape = tensor.spec.shape;
    if (const auto base = base_of(name, "_blocks"); !base.empty()) {
      const Tensor& scales = model.tensors.at(base + "_scales");
      const i64 ins = shape[2] * 32;
      add(base, {shape[0], ins, shape[1]}, [&, t = &tensor](i64 row, i64 out) {
        const i64 at = (row / ins * t->spec.shape[1] + out) * ins + row % ins;
        const int exponent = static_cast<int>(scales.bytes[static_cast<size_t>(at / 32)]) - 127;
        return std::ldexp(Reader::e2m1(Reader::field(*t, at / 2, at % 2 * 4, 4)), exponent);
      });
    } else if (const auto gptq = base_of(name, ".qweight"); !gptq.empty()) {
      const Reader reader{model.tensors, quantization, gptq};
      const bool is_awq = method == "awq";
      const i64 per = is_awq ? 8 : 32 / i64{quantization["bits"]};
      const Shape whole =
          is_awq ? Shape{shape[1] * per, shape[0]} : Shape{shape[1], shape[0] * per};
      add(gptq + ".weight", whole,
          [&](i64 o, i64 i) { return is_awq ? reader.awq(o, i) : reader.gptq(o, i); });
    } else if (const auto packed = base_of(name, ".weight_packed"); !packed.empty()) {
      const Reader reader{model.tensors, quantization, packed};
      const bool is_fp4 = tensor.spec.dtype == Dtype::kU8;
      const i64 n =
          is_fp4 ? 4 : i64{quantization["config_groups"]["group_0"]["weights"]["num_bits"]};
      add(packed + ".weight", {shape[0], shape[1] * bits(tensor.spec.dtype) / n},
          [&, t = &tensor](i64 o, i64 i) {
            return is_fp4 ? reader.nvfp4(*t, o, i) : reader.pack_quantized(o, i);
          });
    } else if (const auto plain = base_of(name, ".weight");
               !plain.empty() && bits(tensor.spec.dtype) == 8) {
      const Reader reader{model.tensors, quantization, plain};
      const bool is_fp4 = tensor.spec.dtype == Dtype::kU8;
      add(name, {shape[0], shape[1] * (is_fp4 ? 2 : 1)}, [&, t = &tensor](i64 o, i64 i) {
        return is_fp4 ? reader.nvfp4(*t, o, i) : reader.scaled(*t, o, i);
      });
    }
  }
  return weights;
}

}  // namespace shardtool::test
