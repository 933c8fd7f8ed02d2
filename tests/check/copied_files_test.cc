// Files of ranks that are copies of each other, in outputs without a manifest.
#include "lib/check/copied_files.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <filesystem>

#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transfer/sources/stored_data.h"
#include "lib/api/transform.h"
#include "tests/check/broken_checkpoints.h"
#include "tests/support/safetensors_text.h"

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;

/// The sample split over a mesh, opened.
struct Output {
  TempFolder folder;
  api::LogicalCheckpoint opened;
  std::vector<check::DataTensor> tensors;

  explicit Output(const std::string& mesh) {
    api::SplitOptions options;
    options.source = SHARDTOOL_SAMPLE;
    options.mapping.mesh = mesh::parse_mesh(mesh);
    options.write.output = folder / "out";
    api::split(options);
    opened = api::open_logical({options.write.output});
    for (const auto& tensor : opened.tensors) tensors.push_back(api::stored_data(tensor));
  }
  std::optional<check::CopiedFile> found() const {
    return check::copied_file(tensors, opened.files);
  }
};

TEST_CASE("a copy of another rank's file is found, and replicas are none") {
  CHECK(rc::check("copies", [] {
    const auto size = [] { return *rc::gen::element(1, 2, 4); };
    const int dp = size(), pp = *rc::gen::element(1, 2), tp = size();
    const Output output(fmt::format("dp={},pp={},tp={}", dp, pp, tp));
    RC_ASSERT(!output.found());
    const int replica = pp * tp;
    if (replica == 1) return;
    const int from = *rc::gen::inRange(0, dp * replica);
    const int to = *rc::gen::inRange(0, dp * replica);
    if (from % replica == to % replica) return;
    const auto& files = output.opened.files;
    const auto path = [&](int file) { return files[static_cast<size_t>(file)].path; };
    const bool has_equal_places = fs::file_size(path(from)) == fs::file_size(path(to));
    fs::copy_file(path(from), path(to), fs::copy_options::overwrite_existing);
    if (has_equal_places) RC_ASSERT(output.found().has_value());
  }));
}

TEST_CASE("check finds a copied file of a checkpoint in chunks, which records no hashes") {
  const TempFolder folder;
  api::SplitOptions options;
  options.source = SHARDTOOL_SAMPLE;
  options.mapping.mesh = mesh::parse_mesh("fsdp=2");
  options.mapping.settings = {{"axes.embed", "fsdp"}};
  options.write.output = folder / "out";
  options.write.layout = "dcp";
  api::split(options);
  fs::remove(folder / "out/manifest.json");
  const auto copies = [&] {
    const api::CheckReport report = api::check(reading(options_for(folder / "out")));
    return count_of(report, check::CheckRule::kCopiedFile);
  };
  CHECK(copies() == 0);
  fs::copy_file(folder / "out/__0_0.distcp", folder / "out/__1_0.distcp",
                fs::copy_options::overwrite_existing);
  CHECK(copies() == 1);
}

TEST_CASE("shards of one value prove nothing") {
  const TempFolder folder;
  const auto file = [&](const char* name, const std::string& data) {
    return exec::SurveyedFile{
        folder.write(
            name, safetensors_bytes(R"({"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})",
                                    data)),
        {}};
  };
  const auto holders = std::make_shared<index::HolderSet>(Shape{4, 2});
  for (const i64 row : {0, 2}) {
    holders->add({index::AxisMap::slice(4, {row, row + 2}), index::AxisMap::identity(2)});
  }
  const auto found = [&](const std::string& data) {
    const std::vector<exec::SurveyedFile> files{file("0", data), file("1", data)};
    const i64 begin = static_cast<i64>(fs::file_size(files[0].path)) - 16;
    const check::DataTensor tensor{
        {"w", Dtype::kF32, {4, 2}}, {holders, {{0, begin}, {1, begin}}}, {0, 1}, {}, {}};
    return check::copied_file(std::span(&tensor, 1), files);
  };
  CHECK_FALSE(found(std::string(16, '\0')));
  CHECK(found("shards of values"));
}

}  // namespace
}  // namespace shardtool::test
