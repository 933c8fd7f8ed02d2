// Catalogue of bad input, rows F: output folders and their manifest.
#include "lib/format/manifest/manifest.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/format/safetensors/safetensors.h"
#include "lib/format/shard_files.h"
#include "tests/hostile/verdict.h"

namespace shardtool {
namespace {

namespace fs = std::filesystem;
using format::Manifest;
using index::AxisMap;
using test::refusal;
using test::says;
using test::TempFolder;

constexpr const char* kManifest = "manifest.json";

std::string rank_file(i64 rank) {
  return "model-rank-" + std::to_string(rank) + "-part-0.safetensors";
}

/// An output for tp=2: w [6, 2] cut on axis 0, and b [3] on both.
class Output {
 public:
  Output() {
    manifest.tool_version = "0.1.0";
    manifest.mesh = mesh::Mesh({{"tp", 2}});
    manifest.layout = "plain";
    manifest.tensors = {record("b", Dtype::kU8, {3}, 0), record("w", Dtype::kF16, {6, 2}, 1)};
    for (int rank = 0; rank < 2; ++rank) write_rank(rank);
    write_manifest(to_json(manifest));
  }

  void write_manifest(const std::string& text) { folder.write(kManifest, text); }

  /// Replaces a piece of the manifest's text, which must be present.
  void replace_in_manifest(const std::string& from, const std::string& to) {
    std::string text = to_json(manifest);
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    write_manifest(text.replace(at, from.size(), to));
  }

  Error refused() const { return refusal(folder.path()); }

  TempFolder folder;
  Manifest manifest;

 private:
  /// Regions of a rank for b and w.
  static std::vector<index::Region> regions_of(int rank) {
    return {{AxisMap::identity(3)},
            {AxisMap::slice(6, {3 * rank, 3 * rank + 3}), AxisMap::identity(2)}};
  }

  static format::TensorRecord record(std::string name, Dtype dtype, Shape shape, size_t t) {
    format::TensorRecord record;
    record.name = std::move(name);
    record.dtype = dtype;
    record.shape = std::move(shape);
    record.cut = std::make_shared<const format::CutRecord>(format::CutRecord{"r"});
    record.holders = std::make_shared<const index::HolderSet>(
        index::HolderSet::of(record.shape, std::vector{regions_of(0)[t], regions_of(1)[t]}));
    return record;
  }

  void write_rank(int rank) {
    const std::vector<index::Region> regions = regions_of(rank);
    std::vector<TensorSpec> shards;
    for (size_t t = 0; t < regions.size(); ++t) {
      shards.push_back(
          {manifest.tensors[t].name, manifest.tensors[t].dtype, local_shape(regions[t])});
    }
    const format::TensorTable table(shards);
    const auto plan = format::plan_rank_files(rank, table, 1 << 20);
    const auto& file = plan.files[0];
    folder.write(file.name, header_text(file, table) +
                                std::string(static_cast<size_t>(file.size - file.data_begin), 'x'));
    manifest.files.push_back({file.name, file.size, file.header_xxh3});
    manifest.ranks.push_back({rank, {{"tp", rank}}, {rank}});
    for (size_t t = 0; t < regions.size(); ++t) {
      const i64 bytes = byte_size(shards[t].dtype, shards[t].shape).value();
      manifest.tensors[t].shards.push_back(
          {rank, rank, plan.places[t].offset, bytes, kernels::Hash128{}});
    }
  }
};

}  // namespace

TEST_CASE("an output opens: all stored tensors of all ranks, files numbered like the manifest's") {
  const Output output;
  for (const std::string& location : {output.folder.path(), output.folder / kManifest}) {
    const auto checkpoint = format::open_checkpoint(location);
    CHECK(checkpoint.format == "shardtool output");
    REQUIRE(checkpoint.manifest);
    CHECK(checkpoint.files.size() == 2);
    CHECK(checkpoint.tensors.size() == 4);
    CHECK(checkpoint.files[1].name == output.manifest.files[1].name);
    CHECK(checkpoint.files[1].header_xxh3 == output.manifest.files[1].header_xxh3);
    CHECK(checkpoint.warnings.empty());
    CHECK(checkpoint.other_files.empty());
  }
}

TEST_CASE("F01 F02 a missing rank file is named, an extra one is a warning") {
  const Output output;
  output.folder.write("model-rank-7-part-0.safetensors", "not even opened");
  CHECK(format::open_checkpoint(output.folder.path()).warnings.size() == 1);
  fs::remove(output.folder / rank_file(0));
  fs::remove(output.folder / rank_file(1));
  const Error error = output.refused();
  CHECK(error.code() == ErrorCode::kFileMissing);
  CHECK(says(error, rank_file(0) + ", " + rank_file(1)));
}

TEST_CASE("F03 F11 F12 F13 F14 a manifest that contradicts itself is refused") {
  struct Row {
    std::string from;
    std::string to;
    std::string said;
  };
  const std::vector<Row> rows = {
      {R"({"rank":1,"coordinate":{"tp":1},"files":[1]})",
       R"({"rank":1,"coordinate":{"tp":1},"files":[0]})", "claimed by rank 0 and rank 1"},
      {R"({"rank":1,"coordinate")", R"({"rank":0,"coordinate")", "occurs twice"},
      {R"({"rank":1,"coordinate":{"tp":1})", R"({"rank":1,"coordinate":{"tp":0})",
       "coordinate of rank 1"},
      {R"({"rank":1,"coordinate")", R"({"rank":-1,"coordinate")", "not on the mesh"},
      {R"("files":[1]})", R"("files":[2]})", "names file 2 of 2"},
      {R"("size":2)", R"("size":0)", "the mesh is not valid"},
      {R"("size":2)", R"("size":-1)", "the mesh is not valid"},
      {R"("size":2)", R"("size":"4")", "expected: a number"},
      {R"("size":2)", R"("size":2147483648)", "the mesh is not valid"},
      {R"("size":2)", R"("size":1)", "not on the mesh"},
      {"\"name\":\"model-rank-1", "\"name\":\"../model-rank-1", "leaves the folder"},
      {"\"name\":\"model-rank-1", "\"name\":\"/model-rank-1", "leaves the folder"},
      {"\"name\":\"model-rank-1", "\"name\":\"model-rank-0", "occurs twice in 'files'"},
      {R"(,"xxh3":"00000000000000000000000000000000")", "", "'xxh3' is missing"},
      {R"("shards":[)", R"("unread":true,"shards":[)", "an unread tensor has an 'xxh3'"},
      {R"("xxh3":"00000000000000000000000000000000")", R"("xxh3":"0000")", "a digest is damaged"},
      {R"("xxh3":"00000000000000000000000000000000")",
       R"("xxh3":"0000000000000000000000000000000G")", "a digest is damaged"},
      {R"("axes":[])", R"("axes":[],"digest":"sha256:00")", "a digest is damaged"},
      {R"("header_xxh3":)", R"("sha256":"00","header_xxh3":)", "a digest is damaged"},
      {R"("format_version":"1.0")", R"("format_version":"2.0")", "format_version 2.0"},
      {R"("format_version":"1.0")", R"("format_version":"10")", "format_version 10"},
      {R"("name":"shardtool")", R"("name":"other","note":"shardtool")", "another tool's"},
      {R"("layout":"plain")", R"("layout":"plain","layout":"plain")", "occurs twice"},
      {"\"w\":{", "\"b\":{", "occurs twice in 'tensors'"},
      {R"("dtype":"F16")", R"("dtype":"F17")", "the dtype is unknown"},
      {R"("dtype":"F16")", R"("dtype":"F32")", "the bytes of F32"},
      {R"("slices":[[[0,3]],[[0,2]]])", R"("slices":[[[0,3]]])", "do not fit the shape"},
      {R"("slices":[[[0,3]],[[0,2]]])", R"("slices":[[[0,2]],[[0,2]]])", "do not fit the shape"},
      {R"("slices":[[[0,3]],[[0,2]]])", R"("slices":[[[4,7]],[[0,2]]])", "leave the axis"},
      {R"("slices":[[[0,3]],[[0,2]]])", R"("slices":[[[0,2],[1,2]],[[0,2]]])", "leave the axis"},
      {R"("slices":[[[0,3]],[[0,2]]])", R"("slices":[[[3,0]],[[0,2]]])", "no interval"},
      {R"("slices":[[[0,3]],[[0,2]]])",
       R"("slices":[[{"pad":9223372036854775807},{"pad":9223372036854775807}],[[0,2]]])",
       "overflows"},
      {R"("shape":[6,2])", R"("shape":[6,2,1])", "do not fit the shape"},
      {R"({"rank":1,"file":1)", R"({"rank":1,"file":0)", "a file of rank 1"},
      {R"({"rank":1,"file":1)", R"({"rank":1,"file":9)", "one of 2 files"},
      {R"({"rank":1,"file":1)", R"({"rank":0,"file":0)", "two shards"},
      {R"("offset":4)", R"("offset":9223372036854775807,"x":4)", "inside the"},
      {"\"tied\"", "\"x\"", "'tied' is missing"},
      {"}\n", "}\n{}", "expected the end"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.to);
    Output output;
    output.replace_in_manifest(row.from, row.to);
    const Error error = output.refused();
    CHECK(error.code() == ErrorCode::kManifestInvalid);
    CHECK(says(error, row.said));
  }
}

TEST_CASE("F06 F07 F08 a shard that is not what the manifest records is refused with its tensor") {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {R"("dtype":"F16")", R"("dtype":"BF16")"},  // in both ranks
      {"\"w\":{", "\"v\":{"},                     // in the manifest, not in the file
  };
  for (const auto& [from, to] : rows) {
    CAPTURE(to);
    Output output;
    output.replace_in_manifest(from, to);
    const Error error = output.refused();
    CHECK(error.code() == ErrorCode::kManifestInvalid);
    CHECK_FALSE(error.tensor_name().empty());
  }
  Output shifted;
  ++shifted.manifest.tensors[0].shards[1].offset;
  shifted.manifest.tensors[0].shards[1].offset -= 2;
  shifted.write_manifest(to_json(shifted.manifest));
  CHECK(says(shifted.refused(), "a shard is not what the manifest records"));
  Output unrecorded;
  unrecorded.manifest.tensors[0].shards.pop_back();
  unrecorded.write_manifest(to_json(unrecorded.manifest));
  const Error error = unrecorded.refused();
  CHECK(error.code() == ErrorCode::kManifestInvalid);
  CHECK(error.tensor_name() == "b");
  CHECK(says(error, "does not record"));
}

TEST_CASE("F12 a file behind a link is refused") {
  const Output output;
  const TempFolder elsewhere;
  fs::rename(output.folder / rank_file(1), elsewhere / "x");
  fs::create_symlink(elsewhere / "x", output.folder / rank_file(1));
  const Error error = output.refused();
  CHECK(error.code() == ErrorCode::kManifestInvalid);
  CHECK(says(error, "symbolic link"));
}

TEST_CASE("F15 a file of another size or with another header is damaged") {
  const Output longer;
  std::ofstream(longer.folder / rank_file(1), std::ios::app) << "x";
  CHECK(longer.refused().code() == ErrorCode::kDataMismatch);

  const Output edited;
  std::fstream file(edited.folder / rank_file(1), std::ios::in | std::ios::out);
  file.seekp(4095);
  file << "\t";  // padding: another header, still valid JSON
  file.close();
  const Error error = edited.refused();
  CHECK(error.code() == ErrorCode::kDataMismatch);
  CHECK(says(error, "the header is not the one that was written"));
}

TEST_CASE("a manifest that is cut anywhere is refused") {
  const Output output;
  const std::string text = to_json(output.manifest);
  for (size_t size = 0; size + 2 < text.size(); size += 7) {
    CAPTURE(size);
    CHECK_THROWS_AS(format::parse_manifest(text.substr(0, size), kManifest), Error);
  }
}

}  // namespace shardtool
