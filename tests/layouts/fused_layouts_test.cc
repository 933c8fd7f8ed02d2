// Files that an engine saved with fused tensors are read by the inverse of the layout's rules.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/api/check.h"
#include "lib/api/diff.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transform.h"
#include "lib/layouts/recognise.h"
#include "tests/layouts/tables.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::layouts {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::TempFolder;
using test::Tensors;

/// Models whose scales are numbers that vLLM stores side by side: [] and [1] look alike there.
const std::set<std::string> kScalarScales = {"llama_fp8_tensor", "llama_modelopt_fp8",
                                             "llama_modelopt_nvfp4", "llama_nvfp4",
                                             "mistral_fp8_tensor"};

/// Models that are published under other names than those of transformers. Nothing in the files
/// tells which ones a checkpoint had.
const std::set<std::string> kOtherNames = {"gemma3", "qwen2_5_vl"};

json table_of(const std::string& layout, const std::string& model) {
  return json::parse(std::ifstream(fs::path(SHARDTOOL_SOURCE_DIR) / "tests/layouts/golden" /
                                   layout / (model + ".json")));
}

/// Splits a model into several files per rank, and removes the manifest. Returns the names of the
/// tensors that the files leave out.
std::vector<std::string> save_as_engine(const std::string& whole, const std::string& output,
                                        const std::string& layout, const json& flags) {
  api::SplitOptions options;
  options.source = whole;
  options.mapping = test::choice_of(flags);
  options.write.output = output;
  options.write.layout = layout;
  options.write.max_file_size = 20'000;
  fs::remove_all(output);
  api::split(options);
  const json manifest = json::parse(std::ifstream(output + "/manifest.json"));
  fs::remove(output + "/manifest.json");
  return manifest.at("dropped");
}

api::TransformReport merge(const std::string& source, const std::string& output) {
  api::MergeOptions options;
  options.sources = {source};
  options.write.output = output;
  options.write.force = true;
  return api::merge(options);
}

json rows_without(json rows, const std::vector<std::string>& names) {
  for (const std::string& name : names) rows.erase(name);
  return rows;
}

/// Dtypes, shapes and hashes, without names.
std::multiset<std::string> contents_of(const json& rows) {
  std::multiset<std::string> contents;
  for (const auto& [name, row] : rows.items()) contents.insert(row.dump());
  return contents;
}

/// Meshes of one to eight ranks, and those whose files the engine has loaded.
std::vector<json> meshes_of(const json& table) {
  std::vector<json> meshes;
  for (const char* mesh : {"tp=1", "tp=2", "tp=4", "tp=8", "pp=2", "pp=2,tp=2"}) {
    meshes.push_back({"--mesh", mesh});
  }
  for (const json& mesh : table.at("meshes")) {
    const json& flags = mesh.at("flags");
    if (std::ranges::count(meshes, flags) == 0) meshes.push_back(flags);
  }
  return meshes;
}

/// Saves a model in every mesh in which the layout can, merges the files, and compares. Returns the
/// number of these meshes.
int merge_all_meshes(const fs::path& path) {
  const json table = json::parse(std::ifstream(path));
  const std::string layout = table.at("layout");
  const TempFolder folder;
  const json whole = test::rows_of(test::write_model(folder / "whole", table));
  int merged = 0;
  for (const json& flags : meshes_of(table)) {
    CAPTURE(path.string());
    CAPTURE(flags.dump());
    std::vector<std::string> dropped;
    const auto refused = testing::error_of(
        [&] { dropped = save_as_engine(folder / "whole", folder / "saved", layout, flags); });
    if (refused) continue;  // such as stages of SGLang, or heads that do not divide
    const std::string saved = layout + ":" + folder / "saved";
    ++merged;
    if (kScalarScales.contains(path.stem().string())) {
      CHECK_ERROR(kUnsupported, merge(saved, folder / "merged"));
      continue;
    }
    merge(saved, folder / "merged");
    const json found = test::rows_of(test::read_tensors(folder / "merged", "model"));
    const json expected = rows_without(whole, dropped);
    CHECK(contents_of(found) == contents_of(expected));
    if (!kOtherNames.contains(path.stem().string())) CHECK(found == expected);
  }
  return merged;
}

/// A Llama as vLLM or SGLang saves it.
struct Saved {
  TempFolder folder;
  Tensors whole;

  explicit Saved(const std::string& mesh, const std::string& layout = "vllm@0.32",
                 const std::string& model = "llama") {
    whole = test::write_model(folder / "whole", table_of(layout, model));
    save_as_engine(folder / "whole", folder / "saved", layout, {"--mesh", mesh});
  }
  std::string file(const std::string& name) const { return folder / ("saved/" + name); }
  std::optional<Error> error(const std::string& name = "vllm:") const {
    return testing::error_of([&] { merge(name + folder / "saved", folder / "merged"); });
  }
  /// Replaces all files of a rank by one with these tensors.
  void write_rank(int rank, const Tensors& tensors) const {
    const std::string prefix = fmt::format("model-rank-{}-part-", rank);
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder / "saved")) {
      if (entry.path().filename().string().starts_with(prefix)) files.push_back(entry.path());
    }
    for (const fs::path& file : files) fs::remove(file);
    test::write_checkpoint(folder / "other", tensors);
    fs::rename(folder / "other/model.safetensors", file(prefix + "0.safetensors"));
  }
  Tensors rank(int number) const {
    return test::read_tensors(folder / "saved", fmt::format("model-rank-{}-part-", number));
  }
};

}  // namespace

TEST_CASE("files with fused tensors merge to the model, whatever model and mesh it was") {
  for (const std::string layout : {"vllm@0.32", "sglang@0.5"}) {
    for (const fs::path& path : test::tables(layout)) CHECK(merge_all_meshes(path) >= 1);
  }
}

TEST_CASE("files of an engine are resharded, checked and compared as the model that they hold") {
  const Saved saved("tp=8");  // twice as many ranks as heads of keys
  const std::string source = "vllm:" + saved.folder / "saved";
  api::ReshardOptions reshard;
  reshard.sources = {source};
  reshard.to = test::choice_of({"--mesh", "tp=2"});
  reshard.write.output = saved.folder / "resharded";
  reshard.write.layout = "vllm";
  api::reshard(reshard);
  save_as_engine(saved.folder / "whole", saved.folder / "tp2", "vllm", {"--mesh", "tp=2"});
  for (const std::string rank : {"model-rank-0-part-", "model-rank-1-part-"}) {
    CHECK(test::rows_of(test::read_tensors(saved.folder / "resharded", rank)) ==
          test::rows_of(test::read_tensors(saved.folder / "tp2", rank)));
  }
  api::DiffOptions diff;
  diff.a = source;
  diff.b = saved.folder / "whole";
  CHECK(api::diff(diff).equal);
  api::CheckOptions check;
  check.sources = {source};
  check.data = check::DataSubset{};
  check.ignore = {"ST0701", "ST0702"};  // drawn tensors have any bits
  CHECK(api::check(check).findings.empty());
  Tensors changed = saved.rank(5);
  changed.at("model.norm.weight").bytes.front() ^= 1;
  saved.write_rank(5, changed);
  const auto findings = api::check(check).findings;
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule == check::CheckRule::kReplicasDiffer);
}

TEST_CASE("the ranks whose files are missing are named, also those behind the last file") {
  for (const std::vector<int>& ranks : {std::vector{1}, {3}, {0, 3}, {1, 2, 3}}) {
    CAPTURE(ranks.size());
    const Saved saved("tp=4");
    std::vector<fs::path> removed;
    for (const auto& entry : fs::directory_iterator(saved.folder / "saved")) {
      for (const int rank : ranks) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(fmt::format("model-rank-{}-", rank))) removed.push_back(entry.path());
      }
    }
    for (const fs::path& file : removed) fs::remove(file);
    const auto error = saved.error();
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kCoverage);
    CHECK(error->message() == fmt::format("the files of {} of 4 ranks are missing", ranks.size()));
  }
}

TEST_CASE("files that are not what the layout makes of config.json's model are refused") {
  const Saved saved("tp=2");
  const Tensors good = saved.rank(1);
  const auto code_with = [&](const Tensors& tensors) {
    saved.write_rank(1, tensors);
    const auto error = saved.error();
    REQUIRE(error);
    return error->code();
  };
  const std::string qkv = "model.layers.1.self_attn.qkv_proj.weight";
  Tensors bad = good;
  bad.erase(qkv);
  CHECK(code_with(bad) == ErrorCode::kCoverage);
  bad = good;
  bad.erase("model.layers.0.self_attn.attn._k_scale");  // gone once vLLM has processed FP8 weights
  CHECK(code_with(bad) == ErrorCode::kCoverage);
  bad = good;
  Shape turned = good.at(qkv).spec.shape;
  turned.back() *= 2;
  bad[qkv] = test::numbered_tensor(qkv, Dtype::kBF16, turned);
  CHECK(code_with(bad) == ErrorCode::kShapeMismatch);
  bad = good;
  bad[qkv] = test::numbered_tensor(qkv, Dtype::kF32, good.at(qkv).spec.shape);
  CHECK(code_with(bad) == ErrorCode::kShapeMismatch);
  bad = good;
  bad["other.weight"] = test::numbered_tensor("other.weight", Dtype::kBF16, {1});
  CHECK(code_with(bad) == ErrorCode::kNoRule);
  saved.write_rank(0, saved.rank(0));
  CHECK(code_with(saved.rank(0)) == ErrorCode::kDataMismatch);  // a copy of another rank's file
  saved.write_rank(1, good);
  CHECK_FALSE(saved.error());
  json config = table_of("vllm@0.32", "llama").at("config");
  config["num_key_value_heads"] = 2;
  std::ofstream(saved.file("config.json")) << config.dump();
  CHECK(saved.error()->code() == ErrorCode::kShapeMismatch);
  fs::remove(saved.file("config.json"));
  CHECK(saved.error()->code() == ErrorCode::kConfig);
}

TEST_CASE("a missing file of a rank or a stage is no smaller model") {
  const Saved parts("tp=2");
  fs::remove(parts.file("model-rank-1-part-0.safetensors"));
  CHECK(parts.error()->code() == ErrorCode::kCoverage);
  const Saved stages("pp=2");
  std::vector<fs::path> last;
  for (const auto& entry : fs::directory_iterator(stages.folder / "saved")) {
    if (entry.path().filename().string().starts_with("model-pp-1-")) last.push_back(entry.path());
  }
  for (const fs::path& file : last) fs::remove(file);
  CHECK(stages.error()->code() == ErrorCode::kCoverage);
}

TEST_CASE("numbers in names of files do not set the size of tables") {
  const Saved saved("tp=2");
  fs::copy_file(saved.file("model-rank-1-part-0.safetensors"),
                saved.file("model-rank-999999-part-0.safetensors"));
  CHECK(saved.error()->code() == ErrorCode::kCoverage);
  fs::rename(saved.file("model-rank-999999-part-0.safetensors"),
             saved.file("model-rank-99999999999999999999-part-0.safetensors"));
  CHECK(saved.error()->code() == ErrorCode::kUsage);
}

TEST_CASE("a form of weights that a layout cannot express is not read, with the reason") {
  const Saved saved("tp=2", "sglang@0.5");
  json config = table_of("sglang@0.5", "llama").at("config");
  config["quantization_config"] = {{"quant_method", "fp8"}};
  std::ofstream(saved.file("config.json")) << config.dump();
  const auto error = saved.error("sglang:");
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnsupported);
  REQUIRE_FALSE(error->notes().empty());
  CHECK(error->notes().front().second.find("device's kernels") != std::string::npos);
}

TEST_CASE("weights that the engine may have changed before it saved them are read with a warning") {
  const Saved plain("tp=2");
  CHECK(merge("vllm:" + plain.folder / "saved", plain.folder / "merged").warnings.empty());
  const Saved fp8("tp=2", "vllm@0.32", "llama_fp8");
  const auto warnings = merge("vllm:" + fp8.folder / "saved", fp8.folder / "merged").warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("vLLM changes quantised weights") != std::string::npos);
}

TEST_CASE("files that an engine saved get the advice to name its layout") {
  for (const std::string layout : {"vllm", "sglang"}) {
    const Saved saved("tp=2", layout == "vllm" ? "vllm@0.32" : "sglang@0.5");
    const std::string place = saved.folder / "saved";
    const auto error = saved.error("");
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kUnsupported);
    const auto gives = [&](const std::string& line) {
      return line.find(fmt::format("{}:{}", layout, place)) != line.npos;
    };
    CHECK(std::ranges::count_if(error->help_lines(), gives) == 1);
    api::CheckOptions check;
    check.sources = {place};
    const auto findings = api::check(check).findings;
    REQUIRE_FALSE(findings.empty());
    CHECK(gives(findings[0].fix));
  }
  const Saved vllm("tp=2");
  std::vector<std::string> names;
  for (const auto& [name, tensor] : vllm.rank(0)) names.push_back(name);
  const std::vector<std::string> files{"model-rank-0-part-0.safetensors"};
  CHECK(layouts_with_tensors(names, files) == std::vector<std::string>{"vllm"});
  names.clear();
  for (const auto& [name, tensor] : vllm.whole) names.push_back(name);
  CHECK(layouts_with_tensors(names, files).empty());  // the plain layout names files so, too
}

}  // namespace shardtool::layouts
