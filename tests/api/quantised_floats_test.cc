// Quantised weights through the whole program: a device's decoded part equals the part of the
// decoded whole, in exact arithmetic (doubles hold every product here exactly).

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/api/quantised_weights.h"

namespace shardtool::api {
namespace {

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

/// Decodes; the first row of the weight is row `offset` of its first block.
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
    split.check_reshard(2);  // Cuts at whole blocks restore the stored scales.
  }
}

TEST_CASE("FP8 blocks, refined: devices that have copies of different scales are no replicas") {
  const Tensors whole = fp8_weight(8, 8, 4);
  const Matrix decoded = fp8_decoded(whole, 4, 4);
  const Quantised split(whole, kFp8, R"("x", null)", 4, "refine");
  for (i64 rank = 0; rank < 4; ++rank) {
    CHECK(fp8_decoded(split.part(rank), 2, 4).values ==
          taken(decoded, 0, range(2 * rank, 2 * rank + 2)).values);
  }
  split.check_round_trip();
}

// DeepSeek-V4: bytes of two FP4 values, low nibble first, and FP8, both with power-of-two scales.

TEST_CASE("FP4 pairs with a scale per 32 inputs lie beside FP8 blocks, in one model") {
  std::mt19937 random(4);
  const auto byte = [&](i64) { return static_cast<std::uint8_t>(random()); };
  const auto exponent = [&](i64) { return static_cast<std::uint8_t>(120 + random() % 16); };
  Tensors whole;
  whole["w.weight"] = tensor_of<std::uint8_t>("w.weight", Dtype::kI8, {8, 64}, byte);
  whole["w.scale"] = tensor_of<std::uint8_t>("w.scale", Dtype::kF8E8M0, {8, 4}, exponent);
  whole["v.weight"] = tensor_of<std::uint8_t>("v.weight", Dtype::kF8E4M3, {8, 128}, [&](i64) {
    return static_cast<std::uint8_t>(random() % 127);
  });
  whole["v.scale"] = tensor_of<std::uint8_t>("v.scale", Dtype::kF8E8M0, {2, 32}, exponent);
  const auto power = [](const Tensor& scale, i64 at) {
    return std::ldexp(1, element<std::uint8_t>(scale, at) - 127);
  };
  const auto pairs = [&](const Tensors& t) {
    const Tensor& weight = t.at("w.weight");
    const i64 bytes = weight.spec.shape[1];
    return matrix(weight.spec.shape[0], 2 * bytes, [&](i64 r, i64 c) {
      const int pair = element<std::uint8_t>(weight, r * bytes + c / 2);
      return fp4_e2m1(c % 2 == 0 ? pair & 15 : pair >> 4) *
             power(t.at("w.scale"), r * (bytes / 16) + c / 32);
    });
  };
  const auto blocks = [&](const Tensors& t) {
    const Tensor& weight = t.at("v.weight");
    const i64 columns = weight.spec.shape[1];
    return matrix(weight.spec.shape[0], columns, [&](i64 r, i64 c) {
      return fp8_e4m3(element<std::uint8_t>(weight, r * columns + c)) *
             power(t.at("v.scale"), r / 4 * (columns / 4) + c / 4);
    });
  };
  const Quantised rows(whole, kFp8, R"("x", null)", 2);
  const Quantised columns(whole, kFp8, R"(null, "x")", 4);
  CHECK(rows.report().plan.mapping == std::vector<std::string>{"mapping.json", "preset:fp8_block"});
  for (i64 rank = 0; rank < 2; ++rank) {
    const auto kept = range(4 * rank, 4 * rank + 4);
    CHECK(pairs(rows.part(rank)).values == taken(pairs(whole), 0, kept).values);
    CHECK(blocks(rows.part(rank)).values == taken(blocks(whole), 0, kept).values);
  }
  for (i64 rank = 0; rank < 4; ++rank) {
    const auto kept = range(32 * rank, 32 * rank + 32);
    CHECK(pairs(columns.part(rank)).values == taken(pairs(whole), 1, kept).values);
    CHECK(blocks(columns.part(rank)).values == taken(blocks(whole), 1, kept).values);
  }
  rows.check_round_trip();
  columns.check_round_trip();
  columns.check_reshard(2);
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
  // The pattern needs a dot before "experts", as in real names.
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
