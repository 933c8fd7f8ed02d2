// Quantised weights through the whole program: what a device's part decodes to is the part of what
// the whole decodes to, in exact arithmetic (doubles hold every product here exactly).

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "shardtool/api/check.h"
#include "shardtool/api/diff.h"
#include "shardtool/api/transform.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;
using test::Tensor;
using test::Tensors;

template <class T>
T element(const Tensor& tensor, i64 at) {
  T value{};
  std::memcpy(&value, tensor.bytes.data() + at * static_cast<i64>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
Tensor tensor_of(const std::string& name, Dtype dtype, const Shape& shape,
                 const std::function<T(i64)>& value) {
  const i64 n = element_count(shape).value();
  Tensor tensor{{name, dtype, shape}, test::Bytes(static_cast<size_t>(n) * sizeof(T))};
  for (i64 i = 0; i < n; ++i) {
    const T v = value(i);
    std::memcpy(tensor.bytes.data() + static_cast<size_t>(i) * sizeof(T), &v, sizeof(T));
  }
  return tensor;
}

/// A matrix of decoded values.
struct Matrix {
  i64 rows = 0;
  i64 columns = 0;
  std::vector<double> values;
  double operator()(i64 r, i64 c) const { return values[static_cast<size_t>(r * columns + c)]; }
};

Matrix matrix(i64 rows, i64 columns, const std::function<double(i64, i64)>& value) {
  Matrix m{rows, columns, {}};
  for (i64 r = 0; r < rows; ++r) {
    for (i64 c = 0; c < columns; ++c) m.values.push_back(value(r, c));
  }
  return m;
}

/// The rows (axis 0) or columns (axis 1) of m; kZero stands for padding.
constexpr i64 kZero = -1;
Matrix taken(const Matrix& m, size_t axis, const std::vector<i64>& indices) {
  const i64 n = static_cast<i64>(indices.size());
  return matrix(axis == 0 ? n : m.rows, axis == 1 ? n : m.columns, [&](i64 r, i64 c) {
    const i64 at = indices[static_cast<size_t>(axis == 0 ? r : c)];
    if (at == kZero) return 0.0;
    return axis == 0 ? m(at, c) : m(r, at);
  });
}

std::vector<i64> range(i64 begin, i64 end, i64 padding = 0) {
  std::vector<i64> indices;
  for (i64 i = begin; i < end; ++i) indices.push_back(i);
  indices.insert(indices.end(), static_cast<size_t>(padding), kZero);
  return indices;
}

double fp8_e4m3(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15;
  const double fraction = (bits & 7) / 8.0;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -6) : std::ldexp(1 + fraction, exponent - 7);
  return bits & 128 ? -magnitude : magnitude;
}

double fp4_e2m1(int nibble) {
  constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return nibble & 8 ? -kMagnitudes[nibble & 7] : kMagnitudes[nibble & 7];
}

double fp16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return bits & 32768 ? -magnitude : magnitude;
}

/// A checkpoint with one cut weight and its split.
class Quantised {
 public:
  Quantised(const Tensors& tensors, const std::string& quantization, const std::string& dims,
            i64 tp, const std::string& straddle = "error")
      : tensors_(tensors) {
    test::write_checkpoint(folder_ / "whole", tensors);
    folder_.write("whole/config.json", R"({"quantization_config": )" + quantization + "}");
    SplitOptions options;
    options.source = folder_ / "whole";
    options.mapping.path = folder_.write(
        "mapping.json", fmt::format(R"({{"version": 1, "mesh": [{{"axis": "tp", "size": {}}}],
          "axes": {{"x": "tp"}}, "rules": [{{"match": "**", "dims": [{}]}}]}})",
                                    tp, dims));
    options.mapping.settings = {{"straddle", straddle}};
    options.write.output = folder_ / "parts";
    report_ = split(options);
    check_has_no_findings();
  }

  /// The output is complete and right by its own manifest, whatever was done to its blocks.
  void check_has_no_findings() const {
    CheckOptions options;
    options.sources = {folder_ / "parts"};
    options.data = shardtool::check::DataSubset{};
    for (const auto& finding : api::check(options).findings) {
      if (finding.severity < shardtool::check::Severity::kWarning) continue;
      FAIL_CHECK(shardtool::check::rule_info(finding.rule).id << " " << finding.tensor << ": "
                                                              << finding.message);
    }
  }

  Tensors part(i64 rank) const {
    return test::read_tensors(folder_ / "parts", fmt::format("model-rank-{}-", rank));
  }
  std::string parts() const { return folder_ / "parts"; }
  const TransformReport& report() const { return report_; }

  /// merge(split(x)) = x and diff(whole, parts) is empty.
  void check_round_trip() const {
    MergeOptions merging;
    merging.sources = {parts()};
    merging.write.output = folder_ / "merged";
    merge(merging);
    const Tensors merged = test::read_tensors(folder_ / "merged", "model");
    REQUIRE(merged.size() == tensors_.size());
    for (const auto& [name, tensor] : tensors_) {
      CAPTURE(name);
      REQUIRE(merged.at(name).spec.shape == tensor.spec.shape);
      REQUIRE(merged.at(name).bytes == tensor.bytes);
    }
    DiffOptions comparing;
    comparing.a = folder_ / "whole";
    comparing.b = parts();
    CHECK(diff(comparing).equal);
  }

  /// reshard(split(x, A), B) = split(x, B), file by file.
  void check_reshard(i64 tp) const {
    WriteOptions write;
    write.output = folder_ / "resharded";
    MappingChoice to;
    to.mesh = mesh::parse_mesh(fmt::format("tp={}", tp));
    reshard({{parts()}, to, {}, true, write});
    SplitOptions direct;
    direct.source = folder_ / "whole";
    direct.mapping.path = folder_ / "mapping.json";
    direct.mapping.mesh = to.mesh;
    direct.write.output = folder_ / "direct";
    split(direct);
    for (i64 rank = 0; rank < tp; ++rank) {
      const std::string prefix = fmt::format("model-rank-{}-", rank);
      const Tensors a = test::read_tensors(folder_ / "resharded", prefix);
      const Tensors b = test::read_tensors(folder_ / "direct", prefix);
      for (const auto& [name, tensor] : b) {
        CAPTURE(name);
        REQUIRE(a.at(name).bytes == tensor.bytes);
      }
    }
  }

 private:
  TempFolder folder_;
  Tensors tensors_;
  TransformReport report_;
};

// FP8 with a scale per block.

const std::string kFp8 = R"({"quant_method": "fp8", "weight_block_size": [4, 4]})";

Tensors fp8_weight(i64 n, i64 k, i64 block) {
  std::mt19937 random(static_cast<unsigned>(n * 1000 + k));
  Tensors tensors;
  tensors["w.weight"] = tensor_of<std::uint8_t>("w.weight", Dtype::kF8E4M3, {n, k}, [&](i64) {
    return static_cast<std::uint8_t>(random() % 127 | (random() & 128));
  });
  tensors["w.weight_scale_inv"] =
      tensor_of<float>("w.weight_scale_inv", Dtype::kF32, {ceil_div(n, block), ceil_div(k, block)},
                       [&](i64) { return static_cast<float>(random() % 65536 + 1) / 4096; });
  return tensors;
}

/// Decodes; the weight's first row is row `offset` of its first block.
Matrix fp8_decoded(const Tensors& t, i64 row_block, i64 column_block, i64 offset = 0) {
  const Tensor& weight = t.at("w.weight");
  const Tensor& scale = t.at("w.weight_scale_inv");
  const i64 columns = weight.spec.shape[1];
  return matrix(weight.spec.shape[0], columns, [&](i64 r, i64 c) {
    const i64 block = (r + offset) / row_block * scale.spec.shape[1] + c / column_block;
    return fp8_e4m3(element<std::uint8_t>(weight, r * columns + c)) *
           static_cast<double>(element<float>(scale, block));
  });
}

TEST_CASE("FP8 blocks: a part decodes to the part of the whole, by rows and by columns") {
  const Tensors whole = fp8_weight(32, 24, 4);
  const Matrix decoded = fp8_decoded(whole, 4, 4);
  const Quantised rows(whole, kFp8, R"("x", null)", 4);
  for (i64 rank = 0; rank < 4; ++rank) {
    CHECK(fp8_decoded(rows.part(rank), 4, 4).values ==
          taken(decoded, 0, range(8 * rank, 8 * rank + 8)).values);
  }
  rows.check_round_trip();
  rows.check_reshard(2);
  const Quantised columns(whole, kFp8, R"(null, "x")", 3);
  for (i64 rank = 0; rank < 3; ++rank) {
    CHECK(fp8_decoded(columns.part(rank), 4, 4).values ==
          taken(decoded, 1, range(8 * rank, 8 * rank + 8)).values);
  }
  columns.check_round_trip();
}

TEST_CASE("FP8 blocks, cut unevenly in whole blocks") {
  const Tensors whole = fp8_weight(22, 8, 4);  // 6 blocks, the last of 2 rows
  const Matrix decoded = fp8_decoded(whole, 4, 4);
  const Quantised split(whole, kFp8, R"("x", null)", 4, "uneven-aligned");
  const i64 ends[] = {0, 8, 16, 20, 22};
  for (i64 rank = 0; rank < 4; ++rank) {
    CHECK(fp8_decoded(split.part(rank), 4, 4).values ==
          taken(decoded, 0, range(ends[rank], ends[rank + 1])).values);
  }
  REQUIRE(split.report().plan.uneven.size() == 1);
  split.check_round_trip();
}

TEST_CASE("FP8 blocks, padded to whole blocks: padding decodes to zero") {
  const Tensors whole = fp8_weight(20, 8, 4);
  const Matrix decoded = fp8_decoded(whole, 4, 4);
  const Quantised split(whole, kFp8, R"("x", null)", 3, "pad");
  for (i64 rank = 0; rank < 3; ++rank) {
    const i64 end = std::min<i64>(20, 8 * rank + 8);
    CHECK(fp8_decoded(split.part(rank), 4, 4).values ==
          taken(decoded, 0, range(8 * rank, end, 8 * rank + 8 - end)).values);
  }
  split.check_round_trip();
}

TEST_CASE("FP8 blocks, scales shared where a cut falls inside a block") {
  const Tensors whole = fp8_weight(24, 8, 4);
  const Matrix decoded = fp8_decoded(whole, 4, 4);
  const Quantised split(whole, kFp8, R"("x", null)", 4, "replicate-scale");
  for (i64 rank = 0; rank < 4; ++rank) {
    const Tensors part = split.part(rank);
    CHECK(part.at("w.weight_scale_inv").spec.shape == Shape{2, 2});
    CHECK(fp8_decoded(part, 4, 4, 6 * rank % 4).values ==
          taken(decoded, 0, range(6 * rank, 6 * rank + 6)).values);
  }
  split.check_round_trip();
}

TEST_CASE("FP8 blocks, refined to the greatest common divisor, on either axis") {
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    CAPTURE(axis);
    const Tensors whole = axis == 0 ? fp8_weight(24, 8, 4) : fp8_weight(8, 24, 4);
    const Matrix decoded = fp8_decoded(whole, 4, 4);
    const Quantised split(whole, kFp8, axis == 0 ? R"("x", null)" : R"(null, "x")", 4, "refine");
    for (i64 rank = 0; rank < 4; ++rank) {
      const Tensors part = split.part(rank);
      CHECK(part.at("w.weight_scale_inv").spec.shape == (axis == 0 ? Shape{3, 2} : Shape{2, 3}));
      CHECK(fp8_decoded(part, axis == 0 ? 2 : 4, axis == 1 ? 2 : 4).values ==
            taken(decoded, axis, range(6 * rank, 6 * rank + 6)).values);
    }
    split.check_round_trip();
    split.check_reshard(2);  // where cuts are whole blocks again, the stored scales come back
  }
}

// GPTQ: [K/8, N] words of 8 inputs, [G, N/8] zeros, [G, N] scales, [K] group of each input.

Tensors gptq_weight(i64 n, i64 k, i64 group, const std::function<std::int32_t(i64)>& group_of) {
  std::mt19937 random(static_cast<unsigned>(n * 1000 + k));
  const i64 groups = ceil_div(k, group);
  const auto word = [&](i64) { return static_cast<std::int32_t>(random()); };
  Tensors tensors;
  tensors["w.qweight"] = tensor_of<std::int32_t>("w.qweight", Dtype::kI32, {k / 8, n}, word);
  tensors["w.qzeros"] = tensor_of<std::int32_t>("w.qzeros", Dtype::kI32, {groups, n / 8}, word);
  tensors["w.scales"] = tensor_of<std::uint16_t>("w.scales", Dtype::kF16, {groups, n}, [&](i64) {
    return static_cast<std::uint16_t>(random() % 0x7c00);
  });
  tensors["w.g_idx"] = tensor_of<std::int32_t>("w.g_idx", Dtype::kI32, {k}, group_of);
  return tensors;
}

/// W[out][in], by the part's own g_idx.
Matrix gptq_decoded(const Tensors& t) {
  const Tensor& words = t.at("w.qweight");
  const i64 k = words.spec.shape[0] * 8;
  const i64 n = words.spec.shape[1];
  REQUIRE(t.at("w.g_idx").spec.shape == Shape{k});
  return matrix(n, k, [&](i64 out, i64 in) {
    const i64 group = element<std::int32_t>(t.at("w.g_idx"), in);
    REQUIRE(group >= 0);
    REQUIRE(group < t.at("w.scales").spec.shape[0]);
    const auto nibble = [](std::int32_t packed, i64 at) {
      return static_cast<int>(static_cast<std::uint32_t>(packed) >> (4 * at) & 15);
    };
    const int q = nibble(element<std::int32_t>(words, in / 8 * n + out), in % 8);
    const i64 zeros = t.at("w.qzeros").spec.shape[1];
    const int z = nibble(element<std::int32_t>(t.at("w.qzeros"), group * zeros + out / 8), out % 8);
    return fp16(element<std::uint16_t>(t.at("w.scales"), group * n + out)) * (q - (z + 1));
  });
}

std::string gptq_config(bool desc_act) {
  return fmt::format(R"({{"quant_method": "gptq", "bits": 4, "group_size": 16, "desc_act": {}}})",
                     desc_act);
}

TEST_CASE("GPTQ: a part decodes to the part of the whole, its groups counted from zero") {
  const Tensors whole =
      gptq_weight(32, 64, 16, [](i64 in) { return static_cast<std::int32_t>(in / 16); });
  const Matrix decoded = gptq_decoded(whole);
  const Quantised outputs(whole, gptq_config(false), R"("x", null)", 4);
  const Quantised inputs(whole, gptq_config(false), R"(null, "x")", 2);
  for (i64 rank = 0; rank < 4; ++rank) {
    CHECK(gptq_decoded(outputs.part(rank)).values ==
          taken(decoded, 0, range(8 * rank, 8 * rank + 8)).values);
  }
  for (i64 rank = 0; rank < 2; ++rank) {
    const Tensors part = inputs.part(rank);
    CHECK(element<std::int32_t>(part.at("w.g_idx"), 0) == 0);
    CHECK(gptq_decoded(part).values == taken(decoded, 1, range(32 * rank, 32 * rank + 32)).values);
  }
  outputs.check_round_trip();
  inputs.check_round_trip();
  inputs.check_reshard(4);
  outputs.check_reshard(2);
}

TEST_CASE("GPTQ with activation order: any input in any group, scales whole on every device") {
  const Tensors whole =
      gptq_weight(16, 64, 16, [](i64 in) { return static_cast<std::int32_t>(in * 7 % 4); });
  const Matrix decoded = gptq_decoded(whole);
  const Quantised inputs(whole, gptq_config(true), R"(null, "x")", 8);
  for (i64 rank = 0; rank < 8; ++rank) {
    CHECK(gptq_decoded(inputs.part(rank)).values ==
          taken(decoded, 1, range(8 * rank, 8 * rank + 8)).values);
  }
  inputs.check_round_trip();
}

TEST_CASE("groups out of order in a model that says that they are in order are refused") {
  const Tensors whole =
      gptq_weight(16, 64, 16, [](i64 in) { return static_cast<std::int32_t>(in * 7 % 4); });
  const auto e =
      testing::error_of([&] { return Quantised(whole, gptq_config(false), R"(null, "x")", 2); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kDataMismatch);
  CHECK(e->tensor_name() == "w.g_idx");
}

// compressed-tensors: the shape of the packed weight is stored, each device stores its own.

TEST_CASE("the stored shape of a packed weight is that of the device's part") {
  Tensors whole;
  whole["w.weight_packed"] = test::numbered_tensor("w.weight_packed", Dtype::kI32, {32, 8});
  whole["w.weight_scale"] = test::numbered_tensor("w.weight_scale", Dtype::kBF16, {32, 4});
  whole["w.weight_shape"] =
      tensor_of<i64>("w.weight_shape", Dtype::kI64, {2}, [](i64 i) { return i == 0 ? 32 : 64; });
  const std::string config = R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
    "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 16}}}})";
  const Quantised rows(whole, config, R"("x", null)", 3);
  CHECK(element<i64>(rows.part(0).at("w.weight_shape"), 0) == 11);
  CHECK(element<i64>(rows.part(2).at("w.weight_shape"), 0) == 10);
  CHECK(element<i64>(rows.part(2).at("w.weight_shape"), 1) == 64);
  rows.check_round_trip();
  rows.check_reshard(2);
  const Quantised columns(whole, config, R"(null, "x")", 4);
  CHECK(element<i64>(columns.part(3).at("w.weight_shape"), 1) == 16);
  columns.check_round_trip();
}

// MXFP4: [E, out, in / 32, 16] bytes of two values, low nibble first, exponents with bias 127.

TEST_CASE("MXFP4 experts: a part decodes to the part of the whole, over ep and tp") {
  constexpr i64 kExperts = 4, kOut = 6, kBlocks = 4;
  Tensors whole;
  whole["experts.down_proj_blocks"] =
      test::numbered_tensor("experts.down_proj_blocks", Dtype::kU8, {kExperts, kOut, kBlocks, 16});
  whole["experts.down_proj_scales"] =
      tensor_of<std::uint8_t>("experts.down_proj_scales", Dtype::kU8, {kExperts, kOut, kBlocks},
                              [](i64 i) { return static_cast<std::uint8_t>(100 + i % 50); });
  const auto decoded = [](const Tensors& t, i64 expert) {
    const Tensor& blocks = t.at("experts.down_proj_blocks");
    const i64 out = blocks.spec.shape[1];
    const i64 columns = blocks.spec.shape[2] * 32;
    return matrix(out, columns, [&](i64 r, i64 c) {
      const i64 block = (expert * out + r) * blocks.spec.shape[2] + c / 32;
      const int byte = element<std::uint8_t>(blocks, block * 16 + c % 32 / 2);
      const int exponent = element<std::uint8_t>(t.at("experts.down_proj_scales"), block) - 127;
      return std::ldexp(fp4_e2m1(c % 2 == 0 ? byte & 15 : byte >> 4), exponent);
    });
  };
  const TempFolder folder;
  test::write_checkpoint(folder / "whole", whole);
  folder.write("whole/config.json", R"({"quantization_config": {"quant_method": "mxfp4"}})");
  SplitOptions options;
  options.source = folder / "whole";
  options.mapping.path =
      folder.write("mapping.json",
                   R"({"version": 1, "mesh": [{"axis": "ep", "size": 2}, {"axis": "tp", "size": 2}],
        "axes": {"experts": "ep", "mlp": "tp"},
        "rules": [{"match": "**.down_proj", "dims": ["experts", "mlp", null]}]})");
  // The names need a dot before "experts" as real ones have.
  Tensors named;
  for (auto& [name, tensor] : whole) {
    tensor.spec.name = "mlp." + name;
    named[tensor.spec.name] = tensor;
  }
  test::write_checkpoint(folder / "whole", named);
  options.write.output = folder / "parts";
  split(options);
  for (i64 rank = 0; rank < 4; ++rank) {
    Tensors part;
    for (auto& [name, tensor] :
         test::read_tensors(folder / "parts", fmt::format("model-rank-{}-", rank)))
      part[name.substr(4)] = tensor;
    for (i64 expert = 0; expert < 2; ++expert) {
      CHECK(decoded(part, expert).values == taken(decoded(whole, rank / 2 * 2 + expert), 1,
                                                  range(rank % 2 * 64, rank % 2 * 64 + 64))
                                                .values);
    }
  }
}

}  // namespace
}  // namespace shardtool::api
