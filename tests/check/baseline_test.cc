// Baselines: findings that are known.

#include "lib/check/baseline.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/base/error.h"
#include "tests/check/broken_checkpoints.h"
#include "tests/support/throws.h"

namespace shardtool::test {
namespace {

using check::CheckRule;

TEST_CASE("a baseline leaves out what it knows, and nothing else") {
  const TempFolder folder;
  const std::string model = copy_sample(folder);
  edit(model + "/config.json", R"("vocab_size": 1000)", R"("vocab_size": 1001)");
  const api::CheckReport before = api::check(options_for(model));
  REQUIRE(before.errors == 1);
  api::CheckOptions options = options_for(model);
  options.baseline =
      folder.write("baseline.json", api::baseline_text(before, folder / "baseline.json"));
  const api::CheckReport same = api::check(options);
  CHECK(same.errors == 0);
  CHECK(same.known == 1);
  CHECK(same.findings.empty());
  CHECK(same.rules.empty());
  edit(model + "/config.json", R"("hidden_size": 64)", R"("hidden_size": 63)");
  const api::CheckReport worse = api::check(options);
  CHECK(worse.known == 1);
  CHECK(count_of(worse, CheckRule::kHiddenSize) > 0);
  CHECK(count_of(worse, CheckRule::kVocabSize) == 0);
  const std::string twice = R"({"id":"ST0403","count":9223372036854775807})";
  for (const std::string& text :
       {std::string("{"), std::string("{}"), std::string("[]"),
        R"({"format_version":"2.0","root":".","findings":[)" + twice + "," + twice + "]}"}) {
    options.baseline = folder.write("baseline.json", text);
    CHECK_ERROR(kMalformed, api::check(options));
  }
}

/// Two checkpoints with the same fault, and a baseline with the first one's findings.
struct TwoFaults {
  TempFolder folder;
  std::string first = folder / "out/a";
  std::string second = folder / "out/b";
  std::string baseline = folder / "known.json";

  TwoFaults() {
    for (const std::string& model : {first, second}) {
      std::filesystem::create_directories(folder / "out");
      std::filesystem::rename(copy_sample(folder), model);
      edit(model + "/config.json", R"("vocab_size": 1000)", R"("vocab_size": 1001)");
    }
    folder.write("known.json", api::baseline_text(api::check(options_for(first)), baseline));
  }
  api::CheckReport check(const std::vector<std::string>& sources) const {
    api::CheckOptions options;
    options.sources = sources;
    options.baseline = baseline;
    return api::check(options);
  }
};

TEST_CASE("a baseline of one folder does not hide the same fault in another") {
  const TwoFaults fixture;
  const api::CheckReport both = fixture.check({fixture.first, fixture.second});
  CHECK(both.known == 1);
  REQUIRE(both.errors == 1);
  CHECK(both.findings.front().file == fixture.second + "/config.json");
  CHECK(fixture.check({fixture.second}).errors == 1);
}

TEST_CASE("a baseline knows a folder by every way to name it") {
  namespace fs = std::filesystem;
  const TwoFaults fixture;
  const std::string& a = fixture.first;
  fs::create_directory_symlink(fs::path(a).parent_path(), fixture.folder / "link");
  for (const std::string& name :
       {a, a + "/", a + "/.", a + "/../a", a + "//", fixture.folder / "link/a",
        fs::relative(a).string(), "./" + fs::relative(a).string(), a + "/../../out/b/../a"}) {
    CAPTURE(name);
    const api::CheckReport report = fixture.check({name});
    CHECK(report.known == 1);
    CHECK(report.errors == 0);
  }
}

TEST_CASE("a baseline that knew files by their names alone is refused and says how to renew it") {
  const TwoFaults fixture;
  fixture.folder.write("known.json", R"({"format_version": "1.0", "findings": [
    {"id": "ST0403", "file": "config.json", "tensor": "model.embed_tokens.weight", "count": 1}]})");
  const auto error = testing::error_of([&] { fixture.check({fixture.second}); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kMalformed);
  CHECK(error->help_lines().at(0).find("--write-baseline " + fixture.baseline) !=
        std::string::npos);
}

}  // namespace
}  // namespace shardtool::test
