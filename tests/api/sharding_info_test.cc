// The entries of part files' headers by which torch.distributed.checkpoint places the tensors.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/api/transform.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/api/model_files.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/generators.h"

namespace shardtool::api {
namespace {

using test::TempFolder;
using test::Tensors;
namespace fs = std::filesystem;
using Headers = std::map<std::string, std::map<std::string, std::string>>;

/// Metadata of every safetensors file of a folder.
Headers metadata_of(const std::string& folder) {
  Headers headers;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto header = format::safetensors::read_header(store::open_read(entry.path().string()));
    headers[entry.path().filename()] = {header.metadata.begin(), header.metadata.end()};
  }
  return headers;
}

/// Number of files with both entries. Requires that no file has one of them only.
size_t count_infos(const Headers& headers) {
  size_t count = 0;
  for (const auto& [file, metadata] : headers) {
    const bool has_info = metadata.contains("DCP_SHARDING_INFO");
    REQUIRE(metadata.contains("DCP_VERSION") == has_info);
    if (has_info) REQUIRE(metadata.at("DCP_VERSION") == "1.0");
    count += has_info ? 1 : 0;
  }
  return count;
}

/// Copies a part to its offsets, element by element, as torch does.
void put(const test::Tensor& part, const std::vector<i64>& offsets, test::Tensor& whole) {
  const int width = bits(part.spec.dtype);
  i64 from = 0;
  for (const auto& local : reference::tuples(part.spec.shape)) {
    std::vector<i64> global;
    for (size_t a = 0; a < local.size(); ++a) global.push_back(offsets[a] + local[a]);
    reference::copy_element(part.bytes, from++, whole.bytes,
                            reference::row_major(global, whole.spec.shape), width);
  }
}

/// Puts the tensors of all files of a folder together by their offsets alone.
Tensors put_together(const std::string& folder, const Tensors& like) {
  Tensors whole = like;
  for (auto& [name, tensor] : whole) std::fill(tensor.bytes.begin(), tensor.bytes.end(), 0);
  for (const auto& [file, metadata] : metadata_of(folder)) {
    const auto info = nlohmann::json::parse(metadata.at("DCP_SHARDING_INFO"));
    const Tensors parts = test::read_tensors(folder, file);
    REQUIRE(info.size() == parts.size());
    for (const auto& [name, part] : parts) {
      const auto offsets = info.at(name).at("saved_offsets").get<std::vector<i64>>();
      REQUIRE(offsets.size() == part.spec.shape.size());
      put(part, offsets, whole.at(name));
    }
  }
  return whole;
}

SplitOptions options_for(const TempFolder& folder, const nlohmann::json& rules, i64 devices) {
  const nlohmann::json mapping = {
      {"version", 1}, {"mesh", {{{"axis", "tp"}, {"size", devices}}}}, {"rules", rules}};
  SplitOptions options;
  options.source = folder / "whole";
  options.mapping.path = folder.write("mapping.json", mapping.dump());
  options.mapping.allow_empty_shards = true;
  options.write.output = folder / "parts";
  return options;
}

nlohmann::json rule(const std::string& name, const nlohmann::json& strategy) {
  return {{"match", name}, {"strategy", strategy}};
}

}  // namespace

TEST_CASE("the offsets in the headers of the parts put every tensor together") {
  CHECK(rc::check("DCP_SHARDING_INFO", [] {
    const TempFolder folder;
    Tensors tensors;
    auto rules = nlohmann::json::array();
    for (i64 t = *gen::between(1, 6); t-- > 0;) {
      const std::string name = fmt::format("t{}\"é\\", t);
      const Shape shape = *gen::shape();
      const Dtype dtype = *rc::gen::element(Dtype::kBool, Dtype::kBF16, Dtype::kF64);
      tensors[name] = test::numbered_tensor(name, dtype, shape);
      const i64 axis = *gen::between(-1, std::ssize(shape) - 1);
      const nlohmann::json strategy = axis < 0
                                          ? nlohmann::json("replicate")
                                          : nlohmann::json{{"type", "axiswise"}, {"axis", axis}};
      rules.push_back(rule(fmt::format("t{}*", t), strategy));
    }
    test::write_checkpoint(folder / "whole", tensors);
    SplitOptions options = options_for(folder, rules, *gen::between(1, 5));
    options.write.max_file_size = *rc::gen::element<i64>(1, 64, 50'000'000'000);
    RC_ASSERT(!split(options).plan.not_boxes.has_value());
    RC_ASSERT(test::same_tensors(put_together(folder / "parts", tensors), tensors));
    MergeOptions merged;
    merged.sources = {folder / "parts"};
    merged.write.output = folder / "merged";
    merge(merged);
    RC_ASSERT(count_infos(metadata_of(folder / "merged")) == 0);
  }));
}

TEST_CASE("one tensor that is not cut into boxes leaves the offsets out of every file") {
  const TempFolder folder;
  Tensors tensors;
  for (const std::string name : {"a", "qkv", "z"}) {
    tensors[name] = test::numbered_tensor(name, Dtype::kF32, {12, 2});
  }
  test::write_checkpoint(folder / "whole", tensors);
  const nlohmann::json fused = {{"type", "segmented"}, {"axis", 0}, {"segments", {6, 6}}};
  const auto rules = [&](const nlohmann::json& of_qkv) {
    return nlohmann::json{rule("a", "rowwise"), rule("qkv", of_qkv), rule("z", "rowwise")};
  };
  SplitOptions options = options_for(folder, rules(fused), 2);
  const auto report = split(options).plan.not_boxes;
  REQUIRE(report.has_value());
  CHECK(report->tensor == "qkv");
  CHECK(report->reason == "on rank 0, axis 0 has 2 intervals");
  CHECK(count_infos(metadata_of(folder / "parts")) == 0);
  // The rest of the mesh decides, too, so that folders written apart agree.
  options = options_for(folder, rules({{"type", "axiswise"}, {"axis", 0}, {"uneven", "pad"}}), 5);
  options.ranks = {0};
  options.write.output = folder / "first";
  CHECK(split(options).plan.not_boxes.value().reason == "on rank 4, axis 0 has padding");
  CHECK(count_infos(metadata_of(folder / "first")) == 0);
}

TEST_CASE("the framework that the source's headers name is kept, unless they differ") {
  const TempFolder folder;
  const auto write = [&](const std::string& name, const std::string& framework) {
    format::safetensors::Metadata metadata = {{"other", "x"}};
    if (!framework.empty()) metadata.emplace_back("format", framework);
    const format::safetensors::Entry entry{name, Dtype::kU8, {2}, 0, 2};
    folder.write("whole/" + name + ".safetensors",
                 write_header(std::span(&entry, 1), metadata, 8) + "ab");
  };
  folder.write("whole/model.safetensors.index.json",
               R"({"metadata": {}, "weight_map": {"a": "a.safetensors", "b": "b.safetensors"}})");
  const auto kept = [&](const std::string& of_a, const std::string& of_b) {
    write("a", of_a);
    write("b", of_b);
    SplitOptions options = options_for(folder, nlohmann::json{rule("*", "rowwise")}, 2);
    options.write.force = true;
    split(options);
    MergeOptions merged;
    merged.sources = {folder / "parts"};
    merged.write.output = folder / "merged";
    merged.write.force = true;
    merge(merged);
    const Headers whole = metadata_of(folder / "merged");
    for (const auto& [file, metadata] : metadata_of(folder / "parts")) {
      CHECK(metadata.at("format") == whole.begin()->second.at("format"));
      CHECK_FALSE(metadata.contains("other"));
    }
    return whole.begin()->second.at("format");
  };
  CHECK(kept("", "") == "pt");
  CHECK(kept("flax", "flax") == "flax");
  CHECK(kept("mlx", "") == "mlx");
  CHECK(kept("pt", "tf") == "pt");
  CHECK(kept(std::string(33, 'x'), "") == "pt");
}

}  // namespace shardtool::api
