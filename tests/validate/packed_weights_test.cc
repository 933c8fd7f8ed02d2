// Weights stored as words of small codes: unpacking gives the numbers of the formats' reference
// writers, shards compute the same, and the report names a fault in any part.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/api/proof/bound_side.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transform.h"
#include "lib/engine/weights/stored_part.h"
#include "lib/model/graph/graph_list.h"
#include "lib/ops/body.h"
#include "tests/golden/models.h"
#include "tests/support/throws.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFormats{"gptq",
                                        "gptq_v2",
                                        "gptq_8bit",
                                        "gptq_act_order",
                                        "awq",
                                        "pack_quantized",
                                        "pack_quantized_symmetric",
                                        "nvfp4",
                                        "nvfp4_modelopt",
                                        "mxfp4"};

using golden::packed_model;

std::string plain_model(const std::string& format) {
  return packed_model(format) + "/plain";
}

/// A model on one device.
class WholeModel {
 public:
  explicit WholeModel(const std::string& folder)
      : files_(api::open_logical({folder})), config_(*files_.config()) {
    std::string why;
    side_ = std::make_unique<api::BoundSide>(model::find_graph(config_, why), config_,
                                             api::whole_files(files_));
  }
  const engine::Side& side() const { return side_->side(); }

 private:
  api::LogicalCheckpoint files_;
  mapping::ModelConfig config_;
  std::unique_ptr<api::BoundSide> side_;
};

/// Returns the packed model's split over a mesh.
std::string packed_parts(const std::string& format, const std::string& mesh,
                         const TempFolder& folder) {
  api::SplitOptions options;
  options.source = packed_model(format);
  options.mapping.mesh = mesh::parse_mesh(mesh);
  options.write.output = folder / "parts";
  api::split(options);
  return options.write.output;
}

api::ValidateReport report_of(const std::string& parts, const std::string& reference,
                              bool compares_values = false) {
  api::ValidateOptions options;
  options.sources = {parts};
  options.reference = reference;
  options.resources.threads = 1;
  options.compares_values = compares_values;
  return api::validate(options);
}

/// Validates with values, and checks that no tier finds a fault.
api::ValidateReport faultless_report(const std::string& parts, const std::string& reference) {
  const api::ValidateReport report = report_of(parts, reference, true);
  CHECK(report.tiers.at(1).outcome == engine::Outcome::kPass);
  CHECK(report.tiers.at(2).outcome == engine::Outcome::kPass);
  CHECK(report.faults.empty());
  return report;
}

engine::ByteRows rows_of(const engine::Side& side, size_t tensor) {
  const auto part = engine::stored_part(side, side, tensor, 0);
  REQUIRE(part.has_value());
  engine::ByteRows all;
  for (i64 outer = 0; outer < part->outer.local_size(); ++outer) {
    // Is not a multiple of a word's codes, so that a chunk begins inside a word.
    constexpr i64 kRows = 13;
    for (i64 row = 0; row < part->rows.local_size(); row += kRows) {
      const i64 end = std::min(row + kRows, part->rows.local_size());
      const auto rows = engine::stored_rows(side, *part, outer, row, end);
      all.insert(all.end(), rows.begin(), rows.end());
    }
  }
  return all;
}

/// Transposes row-major numbers: [.., n, m] to [.., m, n].
engine::ByteRows turned(const engine::ByteRows& bytes, const Shape& shape, i64 element) {
  const i64 n = shape[shape.size() - 2];
  const i64 m = shape.back();
  engine::ByteRows result(bytes.size());
  const i64 matrices = std::ssize(bytes) / (n * m * element);
  for (i64 i = 0; i < matrices * n * m; ++i) {
    const i64 to = i / (n * m) * n * m + i % m * n + i % (n * m) / m;
    std::memcpy(result.data() + to * element, bytes.data() + i * element,
                static_cast<size_t>(element));
  }
  return result;
}

TEST_CASE("packed weights are the numbers that the formats' writers packed") {
  for (const std::string& format : kFormats) {
    CAPTURE(format);
    const WholeModel packed(packed_model(format));
    const WholeModel plain(plain_model(format));
    const engine::Side& side = packed.side();
    CHECK_FALSE(side.unpacked.empty());
    for (const auto& [tensor, made_of] : side.unpacked) {
      const TensorSpec& spec = side.tensors[tensor];
      CAPTURE(spec.name);
      const size_t same = plain.side().by_name.at(spec.name);
      CHECK(plain.side().tensors[same].shape == spec.shape);
      CHECK(plain.side().tensors[same].dtype == spec.dtype);
      auto expected = rows_of(plain.side(), same);
      if (made_of.is_turned) expected = turned(expected, spec.shape, bits(spec.dtype) / 8);
      CHECK(rows_of(side, tensor) == expected);
    }
  }
}

TEST_CASE(
    "shards of packed weights compute what the packed model does, and what the plain one does") {
  for (const std::string& format : kFormats) {
    CAPTURE(format);
    const TempFolder folder;
    const std::string parts = packed_parts(format, "tp=2", folder);
    for (const std::string& reference :
         {packed_model(format), plain_model(format), std::string()}) {
      CAPTURE(reference);
      const api::ValidateReport report = faultless_report(parts, reference);
      // Codes of ModelOpt have the weight's name and another shape.
      CHECK(report.passes() == (format != "nvfp4_modelopt" || !reference.ends_with("/plain")));
    }
  }
}

/// A bit of one number in a rank's part of a tensor.
struct PackedFlip {
  std::string format;
  std::string tensor;
  i64 row = 0;
  i64 column = 0;
  int bit = 0;
};

TEST_CASE("one flipped bit in any part of a packed weight is seen, and the part is named") {
  const std::string q = "model.layers.0.self_attn.q_proj";
  const std::string down = "model.layers.0.mlp.down_proj";
  const std::string experts = "model.layers.0.mlp.experts.";
  const PackedFlip kFlips[] = {{"gptq", q + ".qweight", 1, 3, 9},
                               {"gptq", q + ".qzeros", 1, 0, 5},
                               {"gptq", q + ".scales", 1, 2, 0},
                               {"gptq", down + ".g_idx", 3, 0, 0},
                               {"gptq_act_order", q + ".g_idx", 5, 0, 0},
                               {"awq", q + ".qweight", 7, 1, 30},
                               {"awq", down + ".qzeros", 1, 2, 17},
                               {"awq", q + ".scales", 0, 5, 3},
                               {"pack_quantized", q + ".weight_packed", 3, 1, 4},
                               {"pack_quantized", q + ".weight_zero_point", 1, 1, 6},
                               {"pack_quantized", down + ".weight_scale", 9, 1, 2},
                               {"nvfp4", down + ".weight_packed", 3, 1, 3},
                               {"nvfp4", down + ".weight_scale", 3, 1, 1},
                               {"nvfp4", q + ".weight_global_scale", 0, 0, 1},
                               {"nvfp4_modelopt", q + ".weight_scale_2", 0, 0, 1},
                               {"mxfp4", experts + "gate_up_proj_blocks", 40, 3, 2},
                               {"mxfp4", experts + "down_proj_scales", 17, 0, 0}};
  for (const PackedFlip& flip : kFlips) {
    CAPTURE(flip.format);
    CAPTURE(flip.tensor);
    const TempFolder folder;
    const ShardSet shards(packed_parts(flip.format, "tp=2", folder));
    shards.change(flip.tensor, 1, [&](ShardRows rows) {
      *(rows.at(flip.row, flip.column) + flip.bit / 8) ^=
          static_cast<std::uint8_t>(1U << (flip.bit % 8));
      return rows;
    });
    const api::ValidateReport report = report_of(shards.folder(), packed_model(flip.format));
    CHECK(report.outcome == engine::Outcome::kFail);
    CHECK(report.tiers.at(1).outcome == engine::Outcome::kFail);
    REQUIRE_FALSE(report.faults.empty());
    CHECK(report.faults.front().tensor == flip.tensor);
    CHECK(report.faults.front().rank == 1);
    const std::string& words = report.faults.front().diagnosis;
    CHECK(words.find(flip.tensor) != std::string::npos);
    const size_t is = words.find(" is ");
    const size_t instead = words.find(" instead of ");
    if (is == words.npos || instead == words.npos) continue;
    const size_t found = is + 4, expected = instead + 12;
    CHECK(words.substr(found, instead - found) != words.substr(expected));  // as written
  }
}

TEST_CASE("scales of other groups are told as what they hold") {
  const TempFolder folder;
  const ShardSet shards(packed_parts("awq", "tp=2", folder));
  const std::string scales = "model.layers.0.mlp.down_proj.scales";
  shards.exchange(scales, 0, 1);
  const api::ValidateReport report = report_of(shards.folder(), packed_model("awq"));
  REQUIRE_FALSE(report.faults.empty());
  CHECK(report.faults.front().tensor == scales);
  CAPTURE(report.faults.front().diagnosis);
  CHECK(report.faults.front().diagnosis.find("rank 0 holds the shard of rank 1") !=
        std::string::npos);
}

TEST_CASE("an input in a group that its device lacks is an error that names both") {
  const TempFolder folder;
  const ShardSet shards(packed_parts("gptq", "tp=2", folder));
  const std::string groups = "model.layers.0.mlp.down_proj.g_idx";
  shards.change(groups, 1, [](ShardRows rows) {
    rows.set_bits(3, 0, 7);
    return rows;
  });
  const auto error = testing::error_of([&] { report_of(shards.folder(), packed_model("gptq")); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kDataMismatch);
  CHECK(error->tensor_name() == groups);
  CHECK(error->message() == "input 35 is in group 9 of scales, which rank 1 lacks");
}

TEST_CASE(
    "a stored shape that is another weight's is an error, and counts as tested where it is right") {
  const TempFolder folder;
  const ShardSet shards(packed_parts("pack_quantized", "tp=2", folder));
  CHECK(report_of(shards.folder(), packed_model("pack_quantized")).untested.empty());
  const std::string shape = "model.layers.0.mlp.down_proj.weight_shape";
  shards.change(shape, 1, [](ShardRows rows) {
    rows.add_to_bits(0, 0, 1);
    return rows;
  });
  const auto error =
      testing::error_of([&] { report_of(shards.folder(), packed_model("pack_quantized")); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kDataMismatch);
  CHECK(error->tensor_name() == shape);
}

/// A packed model with so many rows in its MLP, and the same one unpacked: the last word of a row
/// of down_proj has codes beyond the inputs.
class PaddedModel {
 public:
  PaddedModel(const std::string& format, i64 inputs) {
    write(packed_model(format), "packed", inputs);
    write(plain_model(format), "plain", inputs);
  }
  std::string packed() const { return folder_ / "packed"; }
  std::string plain() const { return folder_ / "plain"; }
  std::string parts(const std::string& mesh) const {
    api::SplitOptions options;
    options.source = packed();
    options.mapping.mesh = mesh::parse_mesh(mesh);
    options.mapping.settings = {{"straddle", "uneven-aligned"}};
    options.write.output = folder_ / mesh;
    api::split(options);
    return options.write.output;
  }
  /// Unpacks a checkpoint of these weights and returns its tensors.
  Tensors unpacked(const std::string& source) const {
    api::MergeOptions options;
    options.sources = {source};
    options.write.output = folder_ / "out";
    options.write.force = true;
    options.write.dequantize = true;
    options.write.dtype = Dtype::kF32;
    api::merge(options);
    return read_tensors(options.write.output, "model");
  }

 private:
  static constexpr i64 kRows = 64;  ///< of the golden model's MLP

  static void cut(const std::string& name, i64 inputs, Tensor& tensor) {
    const bool is_down = name.find("mlp.down_proj") != name.npos;
    Shape& shape = tensor.spec.shape;
    if (name.ends_with("weight_shape")) {
      std::memcpy(tensor.bytes.data() + (is_down ? sizeof inputs : 0), &inputs, sizeof inputs);
    } else if (is_down && shape.at(1) == kRows) {
      Bytes columns;
      const i64 width = bits(tensor.spec.dtype) / 8;
      for (i64 row = 0; row < shape[0]; ++row) {
        const auto first = tensor.bytes.begin() + row * kRows * width;
        columns.insert(columns.end(), first, first + inputs * width);
      }
      tensor.bytes = std::move(columns);
      shape[1] = inputs;
    } else if (!is_down && shape.at(0) == kRows) {
      shape[0] = inputs;
      tensor.bytes.resize(static_cast<size_t>(*byte_size(tensor.spec.dtype, shape)));
    }
  }

  void write(const std::string& from, const std::string& to, i64 inputs) const {
    Tensors tensors = read_tensors(from, "model");
    for (auto& [name, tensor] : tensors) {
      if (name.find(".mlp.") != name.npos) cut(name, inputs, tensor);
    }
    write_checkpoint(folder_ / to, tensors);
    auto config = nlohmann::json::parse(std::ifstream(from + "/config.json"));
    config["intermediate_size"] = inputs;
    folder_.write(to + "/config.json", config.dump());
  }

  TempFolder folder_;
};

TEST_CASE("codes beyond the inputs, in the last words of rows, are no part of a weight") {
  const std::string down = "model.layers.0.mlp.down_proj.weight";
  for (const char* const format : {"pack_quantized", "pack_quantized_symmetric"}) {
    for (const i64 inputs : {57, 60, 63}) {
      CAPTURE(format);
      CAPTURE(inputs);
      const PaddedModel model(format, inputs);
      const WholeModel packed(model.packed());
      const WholeModel plain(model.plain());
      const size_t weight = packed.side().by_name.at(down);
      CHECK(packed.side().tensors[weight].shape == Shape{32, inputs});
      CHECK(rows_of(packed.side(), weight) == rows_of(plain.side(), plain.side().by_name.at(down)));
      const std::vector<std::string> parts = {model.parts("dp=2"), model.parts("tp=2")};
      for (const std::string& reference : {model.packed(), model.plain()}) {
        for (const std::string& of : parts) {
          CAPTURE(reference);
          CAPTURE(of);
          faultless_report(of, reference);
        }
      }
      for (const std::string& source : {model.packed(), parts[0], parts[1]}) {
        CAPTURE(source);
        const Tensors found = model.unpacked(source);
        const Tensors expected = read_tensors(model.plain(), "model");
        CHECK(found.at(down).spec.shape == Shape{32, inputs});
        CHECK(found.at(down).bytes == expected.at(down).bytes);
      }
    }
  }
}

TEST_CASE("a stored shape with other inputs than the model reads is an error") {
  const std::string shape = "model.layers.0.mlp.down_proj.weight_shape";
  const auto error_of = [&](const std::string& parts, const std::string& reference) {
    const ShardSet shards(parts);
    shards.change(shape, 1, [](ShardRows rows) {
      rows.add_to_bits(1, 0, -1);
      return rows;
    });
    const auto error = testing::error_of([&] { report_of(shards.folder(), reference); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kDataMismatch);
    CHECK(error->tensor_name() == shape);
  };
  const PaddedModel padded("pack_quantized", 60);
  error_of(padded.parts("dp=2"), padded.packed());
  const PaddedModel whole("pack_quantized", 64);
  error_of(whole.parts("tp=2"), whole.packed());
}

TEST_CASE("what cannot be unpacked is an error that names the format") {
  const TempFolder folder;
  const auto error_with = [&](const std::string& format, const std::string& key,
                              nlohmann::json value) {
    const std::string copy = folder / format;
    fs::remove_all(copy);
    fs::copy(packed_model(format), copy, fs::copy_options::recursive);
    auto config = nlohmann::json::parse(std::ifstream(copy + "/config.json"));
    config["quantization_config"][key] = std::move(value);
    std::ofstream(copy + "/config.json") << config.dump();
    return testing::error_of([&] { WholeModel{copy}; });
  };
  auto error = error_with("gptq", "checkpoint_format", "marlin");
  REQUIRE(error);
  CHECK(error->message() == "GPTQ weights in the format 'marlin' cannot be computed with");
  error = error_with("awq", "bits", 8);
  REQUIRE(error);
  CHECK(error->message() == "AWQ weights of 8 bits cannot be computed with");
  error = error_with("gptq", "bits", 3);
  REQUIRE(error);
  CHECK(error->message() == "GPTQ weights of 3 bits cannot be computed with");
}

TEST_CASE(
    "a part whose extents do not fit its codes is an error that names it, never read beyond") {
  const auto error_with = [](const std::string& format, const std::string& part,
                             const Shape& shape) {
    const TempFolder folder;
    Tensors tensors = read_tensors(packed_model(format), "model");
    Tensor& changed = tensors.at("model.layers.0.mlp.down_proj." + part);
    changed.spec.shape = shape;
    changed.bytes.resize(static_cast<size_t>(*byte_size(changed.spec.dtype, shape)));
    write_checkpoint(folder / "model", tensors);
    fs::copy(packed_model(format) + "/config.json", folder / "model");
    const auto error = testing::error_of([&] { WholeModel{folder / "model"}; });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kShapeMismatch);
    CHECK(error->tensor_name() == changed.spec.name);
  };
  const auto shape_of = [](const std::string& format, const std::string& part) {
    return read_tensors(packed_model(format), "model")
        .at("model.layers.0.mlp.down_proj." + part)
        .spec.shape;
  };
  const Shape scales = shape_of("gptq", "scales");
  error_with("gptq", "scales", {scales[0], scales[1] / 2});
  error_with("gptq", "scales", {scales[1]});
  const Shape zeros = shape_of("gptq", "qzeros");
  error_with("gptq", "qzeros", {zeros[0] + 1, zeros[1]});
  error_with("awq", "qzeros", {zeros[1], zeros[0] + 7});
  error_with("gptq", "g_idx", {shape_of("gptq", "g_idx")[0] - 1});
  error_with("pack_quantized", "weight_scale", {1, shape_of("pack_quantized", "weight_scale")[1]});
  error_with("pack_quantized", "weight_shape", {1});
  error_with("nvfp4", "weight_global_scale", {1, 2});
}

TEST_CASE("a packed weight is for products alone") {
  const WholeModel model(packed_model("awq"));
  const size_t weight = model.side().by_name.at("model.layers.0.mlp.up_proj.weight");
  CHECK_ERROR(kUnsupported,
              ops::load_small<double>(model.side(), kernels::NumberMap::kValue, weight, 0));
}

}  // namespace
}  // namespace shardtool::test
