// Catalogue of bad input, rows F, in merge, reshard and check: sets of shards.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/api/check.h"
#include "lib/api/diff.h"
#include "lib/api/transform.h"
#include "tests/hostile/verdict.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::TempFolder;
using test::Tensors;

/// w [6, 2] is cut, n [3] is on every device.
constexpr const char* kMapping = R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
  "rules": [{"match": "w", "strategy": "rowwise"}, {"match": "n", "strategy": "replicate"}]})";

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A checkpoint and its split.
struct Parts {
  explicit Parts(const std::string& mapping = kMapping, Shape shape = {6, 2}) {
    whole["w"] = test::distinct_tensor({"w", Dtype::kU16, std::move(shape)});
    whole["n"] = test::distinct_tensor({"n", Dtype::kU8, {3}});
    test::write_checkpoint(folder / "whole", whole);
    api::SplitOptions options;
    options.source = folder / "whole";
    options.mapping.path = folder.write("mapping.json", mapping);
    options.mapping.allow_empty_shards = true;
    options.write.output = folder / "parts";
    api::split(options);
  }

  std::string file_of(int rank) const {
    return folder / ("parts/model-rank-" + std::to_string(rank) + "-part-0.safetensors");
  }
  json manifest() const { return json::parse(content(folder / "parts/manifest.json")); }
  void write(const json& manifest) const { folder.write("parts/manifest.json", manifest.dump()); }
  api::MergeOptions merge_options() const {
    api::MergeOptions options;
    options.sources = {folder / "parts"};
    options.write.output = folder / "merged";
    return options;
  }
  /// Error code of merging, which must leave no files.
  ErrorCode refused() const {
    const auto error = testing::error_of([&] { return api::merge(merge_options()); });
    REQUIRE(error);
    CHECK_FALSE(fs::exists(folder / "merged"));
    return error->code();
  }
  /// Rules with findings in a check with all data read.
  std::vector<std::string> broken_rules() const {
    api::CheckOptions options;
    options.sources = {folder / "parts"};
    options.data = check::DataSubset{};
    std::vector<std::string> ids;
    for (const auto& row : api::check(options).rules) {
      ids.emplace_back(check::rule_info(row.rule).id);
    }
    return ids;
  }
  bool breaks(const std::string& id) const {
    const std::vector<std::string> ids = broken_rules();
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  }
  void check_merges() const {
    api::merge(merge_options());
    const Tensors merged = test::read_tensors(folder / "merged", "model");
    REQUIRE(merged.size() == whole.size());
    for (const auto& [name, tensor] : whole) CHECK(merged.at(name).bytes == tensor.bytes);
    for (const std::string& id : broken_rules()) {
      CAPTURE(id);
      CHECK(check::find_rule(id)->severity < check::Severity::kWarning);
    }
  }

  TempFolder folder;
  Tensors whole;
};

/// Shards of a tensor in rank order.
json& shards(json& manifest, const std::string& tensor) {
  return manifest["tensors"][tensor]["shards"];
}

}  // namespace

TEST_CASE("F01 F02 a rank file that is missing is refused, an extra one is found by check") {
  const Parts lost;
  fs::remove(lost.file_of(1));
  CHECK(lost.refused() == ErrorCode::kFileMissing);
  CHECK(lost.breaks("ST0304"));
  const Parts extra;
  fs::copy(extra.file_of(1), extra.file_of(7));
  CHECK(extra.breaks("ST0305"));
  CHECK(api::merge(extra.merge_options()).warnings.size() == 1);
  api::DiffOptions compared;
  compared.a = extra.folder / "merged";
  compared.b = extra.folder / "parts";
  const api::DiffReport report = api::diff(compared);
  CHECK(report.equal);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings.front() == "B: " + fs::path(extra.file_of(7)).filename().string() +
                                       ": not named by manifest.json and ignored");
}

TEST_CASE("F09 F18 one changed bit is refused by merge, and named by check") {
  const Parts parts;
  std::string bytes = content(parts.file_of(1));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(parts.file_of(1), std::ios::binary) << bytes;
  CHECK(parts.refused() == ErrorCode::kDataMismatch);
  CHECK(parts.breaks("ST0706"));
}

TEST_CASE("F10 slices that leave a gap or overlap never merge") {
  const Parts gap;
  json manifest = gap.manifest();
  shards(manifest, "w").erase(1);
  gap.write(manifest);
  CHECK(gap.refused() == ErrorCode::kManifestInvalid);  // the file still has the tensor
  const Parts moved;
  manifest = moved.manifest();
  shards(manifest, "w")[1]["slices"][0][0] = {2, 5};
  moved.write(manifest);
  CHECK(moved.refused() == ErrorCode::kCoverage);
  CHECK(moved.breaks("ST0301"));
}

TEST_CASE("F13 a digest or a hash that is not that of the data is found") {
  const Parts digest;
  json manifest = digest.manifest();
  manifest["tensors"]["w"]["digest"] = "0123456789abcdef";
  digest.write(manifest);
  CHECK(digest.refused() == ErrorCode::kDataMismatch);
  CHECK(digest.breaks("ST0705"));
  const Parts hash;
  manifest = hash.manifest();
  shards(manifest, "w")[1]["xxh3"] = std::string(32, '0');
  hash.write(manifest);
  CHECK(hash.breaks("ST0706"));
}

TEST_CASE("F15 a file of another size is damaged") {
  const Parts parts;
  std::ofstream(parts.file_of(0), std::ios::app) << 'x';
  CHECK(parts.refused() == ErrorCode::kDataMismatch);
  CHECK(parts.breaks("ST0307"));
}

TEST_CASE("F16 a padded vocabulary merges to exactly the original rows") {
  const Parts parts(R"({"version": 1, "mesh": [{"axis": "tp", "size": 4}],
    "axes": {"vocab": {"mesh": "tp", "uneven": "pad", "pad_to": 8}},
    "rules": [{"match": "w", "dims": ["vocab", null]}, {"match": "n", "strategy": "replicate"}]})",
                    {11, 2});
  CHECK(test::read_tensors(parts.folder / "parts", "model-rank-3-").at("w").spec.shape ==
        Shape{4, 2});
  parts.check_merges();
}

TEST_CASE("F17 a device without rows keeps an empty shard, and merge is exact") {
  const Parts parts(R"({"version": 1, "mesh": [{"axis": "tp", "size": 4}],
    "axes": {"rows": {"mesh": "tp", "uneven": "chunk"}},
    "rules": [{"match": "w", "dims": ["rows", null]}, {"match": "n", "strategy": "replicate"}]})");
  for (int rank = 0; rank < 4; ++rank) {
    const auto name = "model-rank-" + std::to_string(rank) + "-";
    CHECK(test::read_tensors(parts.folder / "parts", name).at("w").spec.shape ==
          Shape{rank < 3 ? 2 : 0, 2});
  }
  parts.check_merges();
}

TEST_CASE("F21 ranks may hold their tensors in another order each") {
  const Parts parts;
  const Tensors held = test::read_tensors(parts.folder / "parts", "model-rank-1-");
  const size_t n = held.at("n").bytes.size();
  const size_t w = held.at("w").bytes.size();
  const std::string header = R"({"w":{"dtype":"U16","shape":[3,2],"data_offsets":[0,)" +
                             std::to_string(w) +
                             R"(]},"n":{"dtype":"U8","shape":[3],"data_offsets":[)" +
                             std::to_string(w) + "," + std::to_string(w + n) + "]}}";
  std::string data(held.at("w").bytes.begin(), held.at("w").bytes.end());
  data.append(held.at("n").bytes.begin(), held.at("n").bytes.end());
  const std::string file = test::safetensors_bytes(header, data);
  std::ofstream(parts.file_of(1), std::ios::binary) << file;

  json manifest = parts.manifest();
  const size_t begin = 8 + header.size();
  json& record = manifest["files"][shards(manifest, "w")[1]["file"].get<size_t>()];
  record["bytes"] = file.size();
  record["header_xxh3"] = kernels::xxh3_hex(std::as_bytes(std::span(file).first(begin)));
  shards(manifest, "w")[1]["offset"] = begin;
  shards(manifest, "n")[1]["offset"] = begin + w;
  parts.write(manifest);
  parts.check_merges();
}

}  // namespace shardtool
