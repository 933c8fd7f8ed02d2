// Makes every system call of a run fail once. The output must be the old state or the complete new
// one.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transfer/transfer.h"
#include "lib/store/local/syscalls.h"
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

/// A checkpoint that is large enough for direct I/O, and the expected bytes of its split.
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
    options.write.resources.threads = 1;
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

/// A file system with a number of free bytes, during its lifetime.
class FreeSpace {
 public:
  explicit FreeSpace(i64 bytes) : scope_(table()) { free_bytes() = bytes; }

 private:
  static i64& free_bytes() {
    static i64 bytes = 0;
    return bytes;
  }
  static int statvfs(const char* /*path*/, struct statvfs* found) {
    *found = {};
    found->f_frsize = 1;
    found->f_bavail = static_cast<fsblkcnt_t>(free_bytes());
    return 0;
  }
  static store::Syscalls table() {
    store::Syscalls calls = store::real_syscalls();
    calls.statvfs = statvfs;
    return calls;
  }

  store::ScopedSyscalls scope_;
};

TEST_CASE("a run begins only where there is room for all that it writes") {
  const FailingSplit fixture;
  fixture.folder.write("whole/tokenizer.json", std::string(5000, ' '));
  const auto fits_in = [&](i64 bytes) {
    const FreeSpace space(bytes);
    std::filesystem::remove_all(fixture.folder / "out");
    SplitOptions options = fixture.options("out");
    options.write.dry_run = true;
    const auto warnings = split(options).warnings;
    const auto error = testing::error_of([&] { split(fixture.options("out")); });
    if (error) CHECK(error->code() == ErrorCode::kNoSpace);
    CHECK(warnings.empty() == !error.has_value());
    return !error.has_value();
  };
  constexpr i64 kEnough = 1 << 30;
  REQUIRE(fits_in(kEnough));
  const auto files = test::folder_content(fixture.folder / "out");
  i64 written = 0;
  for (const auto& [name, content] : files) written += std::ssize(content);
  CHECK_FALSE(fits_in(written - 1));
  const i64 journal = std::ssize(files.at("manifest.json"));
  CHECK(fits_in(written + journal));
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

/// Calls `hook` once, when a file of the output is opened for reading during its lifetime.
class OnReadBack {
 public:
  explicit OnReadBack(std::function<void()> hook) : scope_(table()) { pending() = std::move(hook); }
  ~OnReadBack() { pending() = nullptr; }

 private:
  static std::function<void()>& pending() {
    static std::function<void()> hook;
    return hook;
  }
  static int openat(int folder, const char* path, int flags, mode_t mode) {
    const bool reads = (flags & (O_WRONLY | O_RDWR | O_DIRECTORY)) == 0;
    if (reads && std::string_view(path).find("model-rank-0-") != std::string_view::npos) {
      if (const auto hook = std::exchange(pending(), nullptr)) hook();
    }
    return store::real_syscalls().openat(folder, path, flags, mode);
  }
  static store::Syscalls table() {
    store::Syscalls calls = store::real_syscalls();
    calls.openat = openat;
    return calls;
  }

  store::ScopedSyscalls scope_;
};

TEST_CASE("a source that is replaced after its headers were read ends the run") {
  const FailingSplit fixture;
  const SplitOptions options = fixture.options("out");
  const std::string source = fixture.folder / "whole/model.safetensors";
  const auto time = std::filesystem::last_write_time(source);
  const auto open_task = [&] {
    Task task{open_logical({options.source}), {}};
    const AppliedMapping applied = apply_mapping(options.mapping, task.source);
    task.target = sharded_target(task.source, applied, {});
    std::filesystem::copy_file(source, source + ".new");
    test::flip_bits(source + ".new", 70'000);
    std::filesystem::last_write_time(source + ".new", time);
    std::filesystem::rename(source + ".new", source);
    return task;
  };
  CHECK_ERROR(kInputChanged, transfer(open_task(), options.write, false));
  CHECK_FALSE(std::filesystem::exists(fixture.folder / "out"));
}

TEST_CASE("a source that changes while padding is filled from it ends the run") {
  const FailingSplit fixture;
  fixture.folder.write("padded.json", R"({"version": 1, "mesh": [{"axis": "tp", "size": 3}],
    "axes": {"r": {"mesh": "tp", "uneven": "pad", "pad_to": 64, "padding": "repeat_last"}},
    "rules": [{"match": "rows", "dims": ["r", null]}, {"match": "columns", "strategy": "replicate"},
              {"match": "norm", "strategy": "replicate"}]})");
  SplitOptions options = fixture.options("out");
  options.mapping.path = fixture.folder / "padded.json";
  bool changed = false;
  const OnReadBack hook([&] {
    test::flip_bits(fixture.folder / "whole/model.safetensors", 70'000);
    changed = true;
  });
  CHECK_ERROR(kInputChanged, split(options));
  CHECK(changed);
  CHECK_FALSE(std::filesystem::exists(fixture.folder / "out"));
}

TEST_CASE("--verify finds a byte that changed after it was written, and publishes nothing") {
  const FailingSplit fixture;
  SplitOptions options = fixture.options("out");
  options.write.verify = true;
  {
    const OnReadBack hook([&] {
      for (const auto& entry : std::filesystem::directory_iterator(fixture.folder.path())) {
        const std::string hidden = entry.path().string();
        if (hidden.ends_with(".tmp")) {
          test::flip_bits(hidden + "/model-rank-1-part-0.safetensors", 70'000);
        }
      }
    });
    CHECK_ERROR(kDataMismatch, split(options));
  }
  CHECK_FALSE(std::filesystem::exists(fixture.folder / "out"));
  const TransformReport report = split(options);
  REQUIRE(report.bytes_verified);
  CHECK(*report.bytes_verified > 700'000);
}

TEST_CASE("--resume --verify reads a complete output, --resume alone looks at its sizes") {
  const FailingSplit fixture;
  SplitOptions options = fixture.options("expected");
  options.write.resume = true;
  CHECK_FALSE(split(options).bytes_verified);
  options.write.verify = true;
  CHECK(split(options).bytes_verified);
  test::flip_bits(fixture.folder / "expected/model-rank-1-part-0.safetensors", 70'000);
  const auto error = testing::error_of([&] { return split(options); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kDataMismatch);
  CHECK(error->tensor_name() == "columns");
  options.write.verify = false;
  CHECK(split(options).was_complete);
}

TEST_CASE("a source that changes while it is read ends the run") {
  const FailingSplit fixture;
  SplitOptions options = fixture.options("out");
  const std::string source = fixture.folder / "whole/model.safetensors";
  bool touched = false;
  options.write.resources.on_progress = [&](const exec::Progress&) {
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
