#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lib/api/check.h"
#include "lib/api/transform.h"
#include "lib/store/local/file.h"
#include "tests/api/model_files.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

/// Tensors whose name in the files depends on the devices.
namespace shardtool::api {
namespace {

using test::TempFolder;
using test::Tensors;

Tensors tensors_of_rank(const TempFolder& folder, i64 rank) {
  return test::read_tensors(folder / "parts",
                            fmt::format("model-rank-{}-part-0.safetensors", rank));
}

/// Splits three layers over three stages of two devices, and a table for both ends of the model.
void split_stages(const TempFolder& folder, const nlohmann::json& store) {
  Tensors tensors;
  for (const std::string name : {"l.0.w", "l.1.w", "l.2.w"}) {
    tensors[name] = test::numbered_tensor(name, Dtype::kU16, {4});
  }
  tensors["other"] = test::numbered_tensor("other", Dtype::kU16, {4, 3});
  tensors["ends"] = test::numbered_tensor("ends", Dtype::kU16, {4, 3});
  test::write_checkpoint(folder / "whole", tensors);
  const nlohmann::json mapping = {
      {"version", 1},
      {"mesh", {{{"axis", "pp"}, {"size", 3}}, {{"axis", "tp"}, {"size", 2}}}},
      {"axes", {{"layers", {{"mesh", "pp"}, {"size", 3}}}, {"rows", {{"mesh", "tp"}}}}},
      {"rules",
       {{{"match", "l.<l>.w"}, {"dims", {nullptr}}, {"index", {{"l", "layers"}}}},
        {{"match", "other"}, {"dims", {nullptr, nullptr}}},
        {{"match", "ends"}, {"dims", {"rows", nullptr}}, {"at", {{"layers", {0, -1}}}}}}},
      {"store", store}};
  SplitOptions options;
  options.source = folder / "whole";
  options.mapping.path = folder.write("stages.json", mapping.dump());
  options.write.output = folder / "parts";
  options.write.force = true;
  split(options);
}

const nlohmann::json kHead = {{"name", "head"}, {"of", "ends"}, {"at", {{"layers", -1}}}};

}  // namespace

TEST_CASE("a tensor of both ends has on each the name that a rule with \"at\" gives") {
  const TempFolder folder;
  split_stages(folder, nlohmann::json::array({kHead}));
  for (i64 rank = 0; rank < 6; ++rank) {
    CAPTURE(rank);
    const Tensors found = tensors_of_rank(folder, rank);
    CHECK(found.contains("ends") == (rank < 2));
    CHECK(found.contains("head") == (rank >= 4));
  }
  CheckOptions checked;
  checked.sources = {folder / "parts"};
  checked.data.emplace();
  CHECK(check(checked).errors == 0);
  MergeOptions merged;
  merged.sources = {folder / "parts"};
  merged.write.output = folder / "merged";
  merge(merged);
  CHECK(test::same_tensors(test::read_tensors(folder / "merged", "model"),
                           test::read_tensors(folder / "whole", "model")));
  std::string manifest = store::read_text(folder / "parts/manifest.json", 1 << 20);
  const size_t at = manifest.find(R"("stored":"head")");
  REQUIRE(at != manifest.npos);
  folder.write("parts/manifest.json", manifest.replace(at, 15, R"("stored":"heap")"));
  merged.write.dry_run = true;
  const auto renamed = testing::error_of([&] { return merge(merged); });
  REQUIRE(renamed);
  CHECK(renamed->message() == "a file lacks a tensor that the manifest records");
}

TEST_CASE("later rules take what a rule with \"at\" leaves, but not together with others") {
  const TempFolder folder;
  split_stages(folder, {kHead, {{"name", "table"}, {"of", "ends"}}});
  CHECK(tensors_of_rank(folder, 0).contains("table"));
  CHECK(tensors_of_rank(folder, 5).contains("head"));
  const auto joined = testing::error_of([&] {
    split_stages(folder, {kHead, {{"name", "x"}, {"of", {"ends", "other"}}}});
    return true;
  });
  REQUIRE(joined);
  CHECK(joined->message() ==
        "a tensor that is stored together with others has another name on some devices");
}

}  // namespace shardtool::api
