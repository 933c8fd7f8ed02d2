#include "lib/format/missing_place.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/format/checkpoint.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::format {
namespace {

/// First line of help of the error that opening a location throws; empty if it has none.
std::string advice_for(const std::string& location) {
  const auto error = testing::error_of([&] { open_checkpoint(location); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kFileMissing);
  return error->help_lines().empty() ? "" : error->help_lines().front();
}

}  // namespace

TEST_CASE("a path that does not exist gets the similar path that does") {
  const test::TempFolder folder;
  folder.write("models/tiny-llama/config.json", "{}");
  const auto suggests = [&](const std::string& typed, const std::string& name) {
    CAPTURE(typed);
    CHECK(advice_for(folder / typed) == "did you mean '" + (folder / name) + "'?");
  };
  suggests("models/tiny-lama", "models/tiny-llama");
  suggests("model/tiny-llama", "models/tiny-llama");
  suggests("models/tiny-llama/confg.json", "models/tiny-llama/config.json");
}

TEST_CASE("a path through a folder that does not exist gets the folder that lacks it") {
  const test::TempFolder folder;
  folder.write("models/llama/config.json", "{}");
  CHECK(advice_for(folder / "models/qwen/weights/first") ==
        "there is no 'qwen' in " + (folder / "models"));
  CHECK(advice_for("no-such-folder-anywhere/model") ==
        "there is no 'no-such-folder-anywhere' in the current folder");
  // The similar folder does not hold the rest of the path.
  CHECK(advice_for(folder / "model/qwen") == "there is no 'model' in " + folder.path());
}

TEST_CASE("a path that has nothing similar beside it gets no advice") {
  const test::TempFolder folder;
  folder.write("models/llama/config.json", "{}");
  CHECK(advice_for(folder / "models/qwen").empty());
  CHECK(advice_on_missing(folder / "models/llama").empty());
  CHECK(advice_on_missing("s3://bucket/model").empty());
}

}  // namespace shardtool::format
