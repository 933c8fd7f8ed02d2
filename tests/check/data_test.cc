// Values of shards, which are read.

#include "lib/check/data/data.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transfer/sources/stored_data.h"
#include "lib/base/error.h"
#include "tests/check/broken_checkpoints.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;
using check::CheckRule;

TEST_CASE("a shard that ends outside its file is not read, the others are") {
  const TempFolder folder;
  const std::string output = split_sample(folder);
  const std::string file = output + "/model-rank-1-part-0.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  const api::CheckReport report = api::check(reading(options_for(output)));
  CHECK(count_of(report, CheckRule::kTruncated) == 1);
  CHECK(count_of(report, CheckRule::kShardHash) == 0);
  CHECK(report.bytes_read > 0);
}

TEST_CASE("a manifest that names fewer files than .metadata has no hash of the others") {
  const TempFolder folder;
  for (const char* mesh : {"tp=1", "tp=4"}) {
    api::SplitOptions split;
    split.source = SHARDTOOL_SAMPLE;
    split.mapping.mesh = mesh::parse_mesh(mesh);
    split.write.output = folder / mesh;
    split.write.layout = "dcp";
    api::split(split);
  }
  fs::copy(folder / "tp=1/manifest.json", folder / "tp=4", fs::copy_options::overwrite_existing);
  const api::CheckReport report = api::check(reading(options_for(folder / "tp=4")));
  CHECK(count_of(report, CheckRule::kShardUnrecorded) > 0);
  CHECK(count_of(report, CheckRule::kFileHash) == 0);
}

TEST_CASE("copies that are on no device are named by their files") {
  const TempFolder folder;
  api::SplitOptions split;
  split.source = SHARDTOOL_SAMPLE;
  split.mapping.mesh = mesh::parse_mesh("dp=2");
  split.write.output = folder / "out";
  api::split(split);
  const api::LogicalCheckpoint opened = api::open_logical({split.write.output});
  const auto offset = [](const api::LogicalTensor& tensor) {
    return tensor.side.slots.front().offset;
  };
  check::DataTensor tensor =
      api::stored_data(*std::ranges::min_element(opened.tensors, {}, offset));
  tensor.ranks.clear();
  tensor.xxh3.clear();
  tensor.digest.reset();
  tensor.side.slots[1].offset += 2;  // other bytes, inside the file
  std::vector<check::DataFile> files;
  for (const exec::SurveyedFile& file : opened.files) files.push_back({file, file.path});
  check::Findings findings{check::Profile("")};
  check::check_data(std::span(&tensor, 1), files, exec::Resources{}, findings);
  REQUIRE(findings.all().size() == 1);
  const check::Finding& found = findings.all().front();
  CHECK(found.rule == CheckRule::kReplicasDiffer);
  CHECK(found.file == files[1].shown);
  CHECK(found.message == "it has other bytes than " + files[0].shown);
}

TEST_CASE("of chunks whose file is lost no other file is blamed") {
  const TempFolder folder;
  api::SplitOptions split;
  split.source = SHARDTOOL_SAMPLE;
  split.mapping.mesh = mesh::parse_mesh("tp=2");
  split.write.output = folder / "dcp";
  split.write.layout = "dcp";
  api::split(split);
  const std::string file = split.write.output + "/__1_0.distcp";
  fs::resize_file(file, fs::file_size(file) / 2);
  for (const bool is_there : {true, false}) {
    CAPTURE(is_there);
    if (!is_there) fs::remove(file);
    const api::CheckReport report = api::check(reading(options_for(split.write.output)));
    CHECK(report.errors > 0);
    for (const auto& finding : report.findings) CHECK(finding.file == file);
  }
}

TEST_CASE("the names in a torch file are covered by its checksums, too") {
  const TempFolder folder;
  api::MergeOptions merge;
  merge.sources = {split_sample(folder)};
  merge.write.output = folder / "dcp";
  merge.write.layout = "dcp";
  api::merge(merge);
  const std::string path = folder / "dcp" + "/__0_0.distcp";
  std::string bytes = read_file(path);
  const size_t pickle = bytes.find("torch._utils");
  REQUIRE(pickle != std::string::npos);
  bytes[pickle] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  const api::CheckReport report = api::check(reading(options_for(folder / "dcp")));
  CHECK(count_of(report, CheckRule::kRecordChecksum) == 1);
}

TEST_CASE("heads that devices share on purpose are no overlap, and must be equal") {
  const TempFolder folder;
  api::SplitOptions split;
  split.source = SHARDTOOL_SAMPLE;
  split.mapping.preset = "llama";
  split.mapping.mesh = mesh::parse_mesh("tp=3");
  split.mapping.settings = {{"axes.kv_heads.small", "gather"}};
  split.write.output = folder / "tp3";
  api::split(split);
  const api::CheckReport good = api::check(reading(options_for(split.write.output)));
  CHECK(good.warnings == 0);
  CHECK(good.errors == 0);
  // The first byte of rank 1's k_proj is the first of rank 0's.
  const std::string manifest = read_file(split.write.output + "/manifest.json");
  const size_t tensor = manifest.find("\"model.layers.0.self_attn.k_proj.weight\"");
  const size_t shard = manifest.find("\"rank\":1", tensor);
  const size_t offset = manifest.find("\"offset\":", shard) + 9;
  const auto at = static_cast<size_t>(std::stoll(manifest.substr(offset)));
  const std::string file = split.write.output + "/model-rank-1-part-0.safetensors";
  std::string bytes = read_file(file);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  folder.write("tp3/model-rank-1-part-0.safetensors", bytes);
  const api::CheckReport damaged = api::check(reading(options_for(split.write.output)));
  CHECK(count_of(damaged, CheckRule::kShardHash) == 1);
  CHECK(count_of(damaged, CheckRule::kReplicasDiffer) == 1);
}

TEST_CASE("a shard of zeros is told as a doubt, unless a manifest records it or masks have it") {
  const TempFolder folder;
  Tensors tensors;
  for (const auto& [name, dtype] : {std::pair("moments", Dtype::kF32),
                                    {"codes", Dtype::kI32},
                                    {"groups", Dtype::kI32},
                                    {"mask", Dtype::kBool}}) {
    const bool is_vector = std::string(name) == "groups";
    Tensor& tensor = tensors[name];
    tensor = numbered_tensor(name, dtype, is_vector ? Shape{8} : Shape{8, 4});
    std::fill(tensor.bytes.begin() + std::ssize(tensor.bytes) / 2, tensor.bytes.end(), 0);
    if (dtype == Dtype::kBool) std::fill_n(tensor.bytes.begin(), tensor.bytes.size() / 2, 1);
  }
  write_checkpoint(folder / "whole", tensors);
  api::SplitOptions split;
  split.source = folder / "whole";
  split.mapping.path = folder.write("rows.json", R"({"version": 1, "mesh": [{"axis": "tp",
      "size": 2}], "rules": [{"match": "**", "strategy": "rowwise"}]})");
  split.write.output = folder / "out";
  api::split(split);
  CHECK(api::check(reading(options_for(split.write.output))).findings.empty());

  fs::remove(split.write.output + "/manifest.json");
  api::CheckOptions foreign = reading(options_for(split.write.output));
  foreign.mapping = split.mapping;
  const api::CheckReport report = api::check(foreign);
  CHECK(report.errors == 0);
  CHECK(count_of(report, CheckRule::kZeroShard) == 2);
  for (const check::Finding& finding : report.findings) {
    if (finding.rule == CheckRule::kZeroShard) CHECK(finding.rank == 1);
  }
}

TEST_CASE("scales of zeros are found, whatever their shape, and biases of zeros are not") {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{8}}) {
    CAPTURE(to_string(shape));
    Tensors tensors;
    for (const char* const name : {"a.weight_scale", "a.input_scale", "a.bias"}) {
      tensors[name] = numbered_tensor(name, Dtype::kF32, shape);
      std::ranges::fill(tensors[name].bytes, reference::Bytes::value_type{});
    }
    const TempFolder folder;
    write_checkpoint(folder.path(), tensors);
    const api::CheckReport report = api::check(reading(options_for(folder.path())));
    CHECK(count_of(report, CheckRule::kZeroTensor) == 2);
  }
}

}  // namespace
}  // namespace shardtool::test
