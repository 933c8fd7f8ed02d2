// Every system call of a run made to fail once: old state or complete new state, never anything
// else.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

#include "shardtool/api/transform.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/faulty_syscalls.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;
using testing::Call;
using testing::FaultySyscalls;

constexpr const char* kThreeRules = R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
  "rules": [{"match": "rows", "strategy": "rowwise"}, {"match": "columns", "strategy": "columnwise"},
            {"match": "norm", "strategy": "replicate"}]})";

/// A checkpoint that is large enough for direct I/O, and what its split must be.
struct FailingSplit {
  TempFolder folder;
  std::map<std::string, std::string> expected;

  FailingSplit() {
    test::Tensors tensors;
    tensors["rows"] = test::numbered_tensor("rows", Dtype::kBF16, {300, 512});
    tensors["columns"] = test::numbered_tensor("columns", Dtype::kBF16, {200, 1024});
    tensors["norm"] = test::numbered_tensor("norm", Dtype::kF32, {77});
    test::write_checkpoint(folder / "whole", tensors);
    folder.write("mapping.json", kThreeRules);
    split(options("expected"));
    expected = test::folder_content(folder / "expected");
  }
  SplitOptions options(const std::string& output) const {
    SplitOptions options;
    options.source = folder / "whole";
    options.mapping.path = folder / "mapping.json";
    options.write.output = folder / output;
    options.write.threads = 1;
    return options;
  }
  bool has_leftovers() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      if (entry.path().filename().string().front() == '.') return true;
    }
    return false;
  }
};

TEST_CASE(
    "each call that writes or names files fails once: nothing is published, or all of it is") {
  const FailingSplit fixture;
  i64 injected = 0;
  for (const Call call : {Call::kPreadv, Call::kPwrite, Call::kFallocate, Call::kFsync,
                          Call::kMkdir, Call::kRename}) {
    for (int n = 1;; ++n) {
      CAPTURE(static_cast<int>(call));
      CAPTURE(n);
      int reached = 0;
      std::optional<Error> error;
      {
        FaultySyscalls faults;
        faults.fail(call, n, EIO);
        error = testing::error_of([&] { return split(fixture.options("out")); });
        reached = faults.count(call);
      }
      if (reached < n) {
        CHECK_FALSE(error.has_value());
        CHECK(test::folder_content(fixture.folder / "out") == fixture.expected);
        std::filesystem::remove_all(fixture.folder / "out");
        break;
      }
      ++injected;
      const bool published = std::filesystem::exists(fixture.folder / "out");
      REQUIRE(error.has_value() == !published);
      if (published) CHECK(test::folder_content(fixture.folder / "out") == fixture.expected);
      CHECK_FALSE(fixture.has_leftovers());
      std::filesystem::remove_all(fixture.folder / "out");
    }
  }
  MESSAGE("faults injected: " << injected);
  CHECK(injected > 20);
}

TEST_CASE("a full disk is exit 5 with its own code, and leaves nothing") {
  const FailingSplit fixture;
  for (const Call call : {Call::kFallocate, Call::kPwrite}) {
    FaultySyscalls faults;
    faults.fail(call, 2, ENOSPC);
    CHECK_ERROR(kNoSpace, split(fixture.options("out")));
    CHECK_FALSE(std::filesystem::exists(fixture.folder / "out"));
    CHECK_FALSE(fixture.has_leftovers());
  }
}

TEST_CASE("short reads and writes, and a file system without fallocate, give the same bytes") {
  const FailingSplit fixture;
  FaultySyscalls faults;
  faults.shorten(Call::kPreadv, 1000);
  faults.shorten(Call::kPwrite, 4096 * 3);
  faults.fail_all(Call::kFallocate, EOPNOTSUPP);
  split(fixture.options("out"));
  CHECK(test::folder_content(fixture.folder / "out") == fixture.expected);
}

TEST_CASE("a write that moves part of a page is finished through the page cache") {
  const FailingSplit fixture;
  FaultySyscalls faults;
  faults.shorten(Call::kPwrite, 4096 * 3 + 100);
  split(fixture.options("out"));
  CHECK(test::folder_content(fixture.folder / "out") == fixture.expected);
}

TEST_CASE("interrupted calls are repeated") {
  const FailingSplit fixture;
  FaultySyscalls faults;
  faults.fail(Call::kPreadv, 4, EINTR);
  faults.fail(Call::kPwrite, 3, EINTR);
  split(fixture.options("out"));
  CHECK(test::folder_content(fixture.folder / "out") == fixture.expected);
}

TEST_CASE("a source that changes while it is read ends the run") {
  const FailingSplit fixture;
  SplitOptions options = fixture.options("out");
  const std::string source = fixture.folder / "whole/model.safetensors";
  bool touched = false;
  options.write.on_progress = [&](const Progress&) {
    if (!touched)
      std::filesystem::last_write_time(
          source, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
    touched = true;
  };
  CHECK_ERROR(kInputChanged, split(options));
  CHECK_FALSE(std::filesystem::exists(fixture.folder / "out"));
}

}  // namespace
}  // namespace shardtool::api
