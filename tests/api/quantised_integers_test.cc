// Quantised weights through the whole program: a device's decoded part equals the part of the
// decoded whole, in exact arithmetic (doubles hold every product here exactly).

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "tests/api/quantised_weights.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

double fp16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return bits & 32768 ? -magnitude : magnitude;
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

/// W[out][in], decoded with the part's own g_idx.
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
  inputs.check_complete();
  for (const i64 rank : {0, 1}) inputs.check_complete({rank});
}

TEST_CASE("GPTQ: a device of one group numbers it zero, which is no finding") {
  const Tensors whole =
      gptq_weight(16, 48, 16, [](i64 in) { return static_cast<std::int32_t>(in / 16); });
  const Quantised inputs(whole, gptq_config(false), R"(null, "x")", 2, "uneven-aligned");
  CHECK(element<std::int32_t>(inputs.part(0).at("w.g_idx"), 31) == 1);
  CHECK(element<std::int32_t>(inputs.part(1).at("w.g_idx"), 15) == 0);
  inputs.check_round_trip();
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

TEST_CASE("GPTQ: shares of a run with another zero point are not joined") {
  const TempFolder folder;
  test::write_checkpoint(folder / "whole", gptq_weight(16, 48, 16, [](i64 in) {
                           return static_cast<std::int32_t>(in / 16);
                         }));
  folder.write("mapping.json",
               R"({"version": 1, "rules": [{"match": "**", "strategy": "replicate"}]})");
  const auto run = [&](const std::string& version, int number) {
    folder.write("whole/config.json",
                 fmt::format(R"({{"quantization_config": {{"quant_method": "gptq", "bits": 4,
                   "group_size": 16, "desc_act": false, "checkpoint_format": "{}"}}}})",
                             version));
    SplitOptions options;
    options.source = folder / "whole";
    options.mapping.path = folder / "mapping.json";
    options.mapping.mesh = mesh::Mesh({{"tp", 2}});
    options.write.output = folder / "out";
    options.write.dequantize = true;
    options.write.share = Share{number, 2};
    return split(options);
  };
  run("gptq", 0);
  CHECK_ERROR(kOtherRun, run("gptq_v2", 1));
  CHECK(run("gptq", 1).share->published);
}

// compressed-tensors: the shape of the packed weight is stored, and each device stores that of its
// part.

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

}  // namespace
}  // namespace shardtool::api
