#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

#include "lib/api/diff.h"
#include "lib/api/transform.h"
#include "tests/api/model_files.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::same_tensors;
using test::TempFolder;
using test::Tensors;

/// A random checkpoint and the cut axis of each tensor (-1: replicated).
struct Model {
  Tensors tensors;
  std::map<std::string, int> cut_axis;
};

Model random_model() {
  Model model;
  const i64 count = *gen::between(1, 6);
  for (i64 t = 0; t < count; ++t) {
    const std::string name = fmt::format("layer.{}.weight", t);
    const Shape shape = *gen::shape();
    const Dtype dtype = *rc::gen::element(Dtype::kBool, Dtype::kI64, Dtype::kBF16, Dtype::kF32);
    model.tensors[name] = test::numbered_tensor(name, dtype, shape);
    model.cut_axis[name] = static_cast<int>(*gen::between(-1, static_cast<i64>(shape.size()) - 1));
  }
  return model;
}

/// Cuts each axis over all devices by numpy.array_split's rule.
std::string mapping_for(const Model& model, const std::string& mesh_axis, i64 devices) {
  nlohmann::json mapping = {{"version", 1},
                            {"mesh", {{{"axis", mesh_axis}, {"size", devices}}}},
                            {"rules", nlohmann::json::array()}};
  for (const auto& [name, axis] : model.cut_axis) {
    nlohmann::json rule = {{"match", name}};
    if (axis < 0) {
      rule["strategy"] = "replicate";
    } else {
      rule["strategy"] = {{"type", "axiswise"}, {"axis", axis}};
    }
    mapping["rules"].push_back(rule);
  }
  return mapping.dump();
}

SplitOptions split_options(const std::string& source, const std::string& mapping,
                           const std::string& output) {
  SplitOptions options;
  options.source = source;
  options.mapping.path = mapping;
  options.mapping.allow_empty_shards = true;
  options.write.output = output;
  return options;
}

/// Returns the part of one rank, copied element by element.
test::Bytes slice(const test::Tensor& tensor, int axis, i64 devices, i64 rank) {
  const Shape& shape = tensor.spec.shape;
  const int width = bits(tensor.spec.dtype);
  i64 begin = 0;
  i64 end = axis < 0 ? 0 : shape[static_cast<size_t>(axis)];
  if (axis >= 0) {
    const i64 n = end;
    begin = 0;
    for (i64 r = 0; r < rank; ++r) begin += n / devices + (r < n % devices ? 1 : 0);
    end = begin + n / devices + (rank < n % devices ? 1 : 0);
  }
  std::vector<i64> kept;
  for (const auto& tuple : reference::tuples(shape)) {
    const bool inside = axis < 0 || (tuple[static_cast<size_t>(axis)] >= begin &&
                                     tuple[static_cast<size_t>(axis)] < end);
    if (inside) kept.push_back(reference::row_major(tuple, shape));
  }
  test::Bytes part = reference::zeros(static_cast<i64>(kept.size()), width);
  for (size_t i = 0; i < kept.size(); ++i) {
    reference::copy_element(tensor.bytes, kept[i], part, static_cast<i64>(i), width);
  }
  return part;
}

bool shards_are_right(const Model& model, const std::string& folder, i64 devices) {
  for (i64 rank = 0; rank < devices; ++rank) {
    const Tensors shards = test::read_tensors(folder, fmt::format("model-rank-{}-", rank));
    if (shards.size() != model.tensors.size()) return false;
    for (const auto& [name, tensor] : model.tensors) {
      if (shards.at(name).bytes != slice(tensor, model.cut_axis.at(name), devices, rank))
        return false;
    }
  }
  return true;
}

TEST_CASE("every byte of every shard is the independent slicer's, merge gives the input back") {
  CHECK(rc::check("split = slicer, merge(split(x)) = x", [] {
    const TempFolder folder;
    const Model model = random_model();
    const i64 devices = *gen::between(1, 5);
    test::write_checkpoint(folder / "whole", model.tensors, static_cast<int>(*gen::between(1, 3)));
    const std::string mapping = folder.write("mapping.json", mapping_for(model, "tp", devices));
    SplitOptions options = split_options(folder / "whole", mapping, folder / "parts");
    options.write.max_file_size = *rc::gen::element<i64>(1, 64, 50'000'000'000);
    split(options);
    RC_ASSERT(shards_are_right(model, folder / "parts", devices));
    MergeOptions merged;
    merged.sources = {folder / "parts"};
    merged.write.output = folder / "merged";
    merge(merged);
    RC_ASSERT(same_tensors(test::read_tensors(folder / "merged", "model"), model.tensors));
  }));
}

TEST_CASE("reshard(split(x, A), B) is split(x, B), file for file, byte for byte") {
  CHECK(rc::check("reshard = split", [] {
    const TempFolder folder;
    Model model = random_model();
    test::write_checkpoint(folder / "whole", model.tensors);
    const i64 from = *gen::between(1, 5);
    const i64 to = *gen::between(1, 5);
    const std::string a = folder.write("a.json", mapping_for(model, "tp", from));
    for (auto& [name, axis] : model.cut_axis) {
      axis = static_cast<int>(
          *gen::between(-1, static_cast<i64>(model.tensors[name].spec.shape.size()) - 1));
    }
    const std::string b = folder.write("b.json", mapping_for(model, "ep", to));
    split(split_options(folder / "whole", a, folder / "in-a"));
    split(split_options(folder / "whole", b, folder / "in-b"));
    ReshardOptions reshard_options;
    reshard_options.sources = {folder / "in-a"};
    reshard_options.to.path = b;
    reshard_options.to.allow_empty_shards = true;
    reshard_options.write.output = folder / "resharded";
    reshard(reshard_options);
    RC_ASSERT(test::folder_content(folder / "resharded") == test::folder_content(folder / "in-b"));
  }));
}

TEST_CASE("ranks that were written apart merge together, and one alone does not cover") {
  const TempFolder folder;
  Model model;
  model.tensors["w"] = test::numbered_tensor("w", Dtype::kF32, {10, 3});
  model.tensors["n"] = test::numbered_tensor("n", Dtype::kF32, {7});
  model.cut_axis = {{"w", 0}, {"n", -1}};
  test::write_checkpoint(folder / "whole", model.tensors);
  const std::string mapping = folder.write("mapping.json", mapping_for(model, "tp", 4));
  SplitOptions first = split_options(folder / "whole", mapping, folder / "first");
  first.ranks = {0, 1};
  SplitOptions second = split_options(folder / "whole", mapping, folder / "second");
  second.ranks = {3, 2};
  split(first);
  split(second);
  MergeOptions both;
  both.sources = {folder / "first", folder / "second"};
  both.write.output = folder / "merged";
  CHECK(merge(both).replicas_compared == 4);
  CHECK(same_tensors(test::read_tensors(folder / "merged", "model"), model.tensors));
  MergeOptions alone;
  alone.sources = {folder / "first"};
  alone.write.output = folder / "half";
  CHECK_ERROR(kCoverage, merge(alone));
  CHECK_FALSE(std::filesystem::exists(folder / "half"));
  both.sources = {folder / "first", folder / "first"};
  both.write.output = folder / "twice";
  CHECK_ERROR(kManifestInvalid, merge(both));
}

TEST_CASE("two runs write the same bytes, manifest included, an existing output is refused") {
  const TempFolder folder;
  Model model;
  model.tensors["w"] = test::numbered_tensor("w", Dtype::kBF16, {9, 4});
  model.cut_axis = {{"w", 1}};
  test::write_checkpoint(folder / "whole", model.tensors);
  const std::string mapping = folder.write("mapping.json", mapping_for(model, "tp", 3));
  split(split_options(folder / "whole", mapping, folder / "one"));
  split(split_options(folder / "whole", mapping, folder / "two"));
  CHECK(test::folder_content(folder / "one") == test::folder_content(folder / "two"));
  CHECK_ERROR(kOutputExists, split(split_options(folder / "whole", mapping, folder / "one")));
  SplitOptions forced = split_options(folder / "whole", mapping, folder / "one");
  forced.write.force = true;
  split(forced);
  CHECK(test::folder_content(folder / "one") == test::folder_content(folder / "two"));
  CHECK_ERROR(kOutputAliasesInput,
              split(split_options(folder / "whole", mapping, folder / "whole/parts")));
}

TEST_CASE("an output may stand beside a single file, and never where the file is") {
  const TempFolder folder;
  Model model;
  model.tensors["w"] = test::numbered_tensor("w", Dtype::kBF16, {9, 4});
  model.cut_axis = {{"w", 1}};
  test::write_checkpoint(folder.path(), model.tensors);
  const std::string mapping = folder.write("mapping.json", mapping_for(model, "tp", 3));
  const std::string file = folder / "model.safetensors";
  split(split_options(file, mapping, folder / "parts"));
  CHECK(std::filesystem::exists(folder / "parts/manifest.json"));
  CHECK_ERROR(kOutputAliasesInput, split(split_options(file, mapping, folder.path())));
  CHECK_ERROR(kOutputAliasesInput, split(split_options(file, mapping, file)));
}

TEST_CASE("force replaces an earlier output, never a folder of something else") {
  const TempFolder folder;
  Model model;
  model.tensors["w"] = test::numbered_tensor("w", Dtype::kBF16, {4, 4});
  model.cut_axis = {{"w", 0}};
  test::write_checkpoint(folder / "whole", model.tensors);
  SplitOptions options =
      split_options(folder / "whole", folder.write("mapping.json", mapping_for(model, "tp", 2)),
                    folder / "notes");
  options.write.force = true;
  folder.write("notes/diary.txt", "dear diary");
  CHECK_ERROR(kOutputExists, split(options));
  CHECK(test::folder_content(folder / "notes").at("diary.txt") == "dear diary");
}

TEST_CASE("what merge makes of an unsharded checkpoint is split as that one, without a warning") {
  const TempFolder folder;
  Model model;
  model.tensors["w"] = test::numbered_tensor("w", Dtype::kF32, {8, 2});
  model.cut_axis = {{"w", 0}};
  test::write_checkpoint(folder / "whole", model.tensors);
  MergeOptions merged;
  merged.sources = {folder / "whole"};
  merged.write.output = folder / "copied";
  merge(merged);
  const std::string mapping = folder.write("mapping.json", mapping_for(model, "tp", 2));
  const auto report = split(split_options(folder / "copied", mapping, folder / "parts"));
  CHECK(report.warnings == std::vector<std::string>{});
  CHECK(shards_are_right(model, folder / "parts", 2));
}

TEST_CASE("a dry run plans everything and writes nothing") {
  const TempFolder folder;
  Model model;
  model.tensors["w"] = test::numbered_tensor("w", Dtype::kF32, {10, 2});
  model.tensors["n"] = test::numbered_tensor("n", Dtype::kF32, {3});
  model.cut_axis = {{"w", 0}, {"n", -1}};
  test::write_checkpoint(folder / "whole", model.tensors);
  const std::string mapping = folder.write("mapping.json", mapping_for(model, "tp", 4));
  SplitOptions options = split_options(folder / "whole", mapping, folder / "out");
  options.write.dry_run = true;
  const TransformReport report = split(options);
  CHECK(report.plan.tensors == 2);
  CHECK(report.plan.split == 1);
  CHECK(report.plan.bytes_in == 80 + 12);
  CHECK(report.plan.bytes_out == 80 + 4 * 12);
  CHECK(report.plan.replicated_bytes == 3 * 12);
  REQUIRE(report.plan.uneven.size() == 1);
  CHECK(report.plan.uneven[0].sizes == std::vector<i64>{3, 3, 2, 2});
  CHECK_FALSE(report.written.has_value());
  CHECK_FALSE(std::filesystem::exists(folder / "out"));
}

}  // namespace
}  // namespace shardtool::api
