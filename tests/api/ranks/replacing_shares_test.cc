// Shares that replace an output, and processes that die while they do.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "lib/api/finish.h"
#include "lib/api/interrupted.h"
#include "lib/api/transform.h"
#include "lib/store/local/output_claim.h"
#include "lib/store/local/tree.h"
#include "tests/api/disturbed_jobs.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/dying_syscalls.h"
#include "tests/support/faulty_syscalls.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;
using testing::Death;
using testing::FaultySyscalls;

constexpr const char* kRowsOfTwo =
    R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
    "rules": [{"match": "rows.*", "strategy": "rowwise"}]})";

/// Two checkpoints whose outputs have the same names and sizes, and other values.
class Replaced {
 public:
  Replaced() {
    for (const std::string model : {"old", "new"}) {
      test::Tensors tensors;
      for (const std::string name : {"rows.a", "rows.b", "rows.c"}) {
        tensors[name] = test::numbered_tensor(name, Dtype::kF32, {64, 32});
        if (model == "old") std::ranges::reverse(tensors[name].bytes);
      }
      test::write_checkpoint(folder / model, tensors);
    }
    folder.write("mapping.json", kRowsOfTwo);
    const FaultySyscalls no_syncs;
    run("new", {});
    expected_ = test::folder_content(out());
  }

  std::string out() const { return folder / "out"; }
  TransformReport run(const std::string& model, std::optional<Share> share) const {
    WriteOptions write;
    write.output = out();
    write.force = true;
    write.share = share;
    write.resources.threads = 1;
    write.journal_bytes = 1;
    MappingChoice mapping;
    mapping.path = folder / "mapping.json";
    return split({folder / model, mapping, {}, write});
  }
  FinishReport finish_out() const { return finish({out(), true, false, {}}); }
  /// Puts the old output there and runs share 0 of the new one.
  void begin() const {
    for (const std::string& name : hidden_names()) fs::remove_all(folder / name);
    fs::remove_all(out());
    run("old", {});
    run("new", Share{0, 2});
  }
  /// Begins, and kills share 1 of the new output before its n-th system call.
  bool dies_at(int n) const {
    begin();
    return testing::dies_at(n, Death::kKilled, 0, [this] { run("new", Share{1, 2}); });
  }
  bool is_right() const { return content() == expected_; }
  bool has_new_manifest() const {
    const auto found = content();
    const auto manifest = found.find("manifest.json");
    return manifest != found.end() && manifest->second == expected_.at("manifest.json");
  }
  std::vector<std::string> hidden_names() const {
    std::vector<std::string> names = store::names_in(folder.path());
    std::erase_if(names, [](const std::string& name) { return name.front() != '.'; });
    return names;
  }

  test::TempFolder folder;

 private:
  std::map<std::string, std::string> content() const {
    return fs::exists(out()) ? test::folder_content(out()) : std::map<std::string, std::string>();
  }

  std::map<std::string, std::string> expected_;
};

TEST_CASE("whichever way a process that replaces an output dies, finish publishes no old weights") {
  const Replaced output;
  for (const bool is_deleted : {false, true}) {
    CAPTURE(is_deleted);
    const auto dies = [&](int n) { return output.dies_at(n); };
    const int deaths = for_each_death(1, dies, [&](int) {
      if (is_deleted) fs::remove_all(output.out());
      const auto error = testing::error_of([&] { return output.finish_out(); });
      if (error) {
        const bool is_missing = error->code() == ErrorCode::kShareMissing ||
                                (is_deleted && error->code() == ErrorCode::kFileMissing);
        CHECK_MESSAGE(is_missing, error->message());
      }
      if (output.has_new_manifest()) CHECK(output.is_right());
      for (const int number : {1, 0}) {
        output.run("new", Share{number, 2});
        if (output.has_new_manifest()) CHECK(output.is_right());
      }
      CHECK(output.is_right());
      CHECK(output.hidden_names().empty());
    });
    CHECK(deaths > 30);
  }
}

TEST_CASE("a finish that dies while it replaces an output is done again") {
  const Replaced output;
  const auto dies = [&](int n) {
    output.begin();
    {
      const store::OutputClaim busy(output.out(), store::Existing::kReplace,
                                    store::LockKind::kShared);
      output.run("new", Share{1, 2});
    }
    return testing::dies_at(n, Death::kKilled, 0, [&] { output.finish_out(); });
  };
  const int deaths = for_each_death(1, dies, [&](int) {
    // A finish that died after the new output took the name finds it complete.
    const auto error = testing::error_of([&] { return output.finish_out(); });
    if (error) CHECK_MESSAGE(error->code() == ErrorCode::kShareMissing, error->message());
    for (const int number : {0, 1}) output.run("new", Share{number, 2});
    CHECK(output.is_right());
    CHECK(output.hidden_names().empty());
  });
  CHECK(deaths > 20);
}

TEST_CASE("what a process has replaced and not deleted is listed, and deleted by the next run") {
  const Replaced output;
  const auto dies = [&](int n) { return output.dies_at(n); };
  int left = 0;
  for_each_death(1, dies, [&](int) {
    if (!output.is_right() || output.hidden_names().size() < 2) return;
    const InterruptedRuns found = interrupted_runs(output.out());
    REQUIRE(found.runs.size() == 1);
    left += fs::exists(found.runs.front().folder) ? 1 : 0;
    CHECK(output.finish_out().was_complete);
    CHECK(output.is_right());
    CHECK(output.hidden_names().empty());
  });
  CHECK(left > 3);
}

}  // namespace
}  // namespace shardtool::api
