// Outputs below a program that shows an object store as a folder.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>

#include "lib/api/doctor.h"
#include "lib/api/transform.h"
#include "lib/store/local/syscalls.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;

/// Has the system tell of a mount of FUSE at a folder, during its lifetime.
class FuseMount {
 public:
  FuseMount(const std::string& folder, const std::string& type, const std::string& source)
      : scope_(table()) {
    table_path() = files_.write(
        "mountinfo", fmt::format("30 22 0:40 / {} rw - {} {} rw\n", folder, type, source));
  }

 private:
  static std::string& table_path() {
    static std::string path;
    return path;
  }
  static int statfs(const char* path, struct statfs* found) {
    constexpr long kFuse = 0x65735546;  // linux/magic.h
    const int result = store::real_syscalls().statfs(path, found);
    found->f_type = kFuse;
    return result;
  }
  static int openat(int folder, const char* path, int flags, mode_t mode) {
    const bool is_table = std::strcmp(path, "/proc/self/mountinfo") == 0;
    return store::real_syscalls().openat(folder, is_table ? table_path().c_str() : path, flags,
                                         mode);
  }
  static store::Syscalls table() {
    store::Syscalls calls = store::real_syscalls();
    calls.statfs = statfs;
    calls.openat = openat;
    return calls;
  }

  TempFolder files_;
  store::ScopedSyscalls scope_;
};

}  // namespace

TEST_CASE("an output on a mount of an object store is refused by name, and doctor tells of it") {
  const TempFolder model;
  test::write_checkpoint(model / "whole", {{"a", test::numbered_tensor("a", Dtype::kF32, {4, 3})}});
  SplitOptions options;
  options.source = model / "whole";
  options.mapping.path =
      model.write("mapping.json", R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
                                      "rules": [{"match": "**", "strategy": "rowwise"}]})");
  struct Program {
    std::string type;
    std::string source;
    std::string refused;
  };
  for (const Program& program :
       {Program{"fuse", "mountpoint-s3", "mountpoint-s3"},
        Program{"fuse.gcsfuse", "bucket", "gcsfuse"}, Program{"fuse.juicefs", "JuiceFS:x", ""}}) {
    CAPTURE(program.type);
    const TempFolder place;
    const std::string folder = fs::canonical(place.path()).string();
    const FuseMount mount(folder, program.type, program.source);
    options.write.output = folder + "/out";
    const auto error = testing::error_of([&] { split(options); });
    const auto checks = doctor(folder);
    const auto told = std::ranges::find(checks, "file system", &DoctorCheck::name);
    CHECK(error.has_value() == !program.refused.empty());
    CHECK((told != checks.end()) == !program.refused.empty());
    if (!error || told == checks.end()) continue;
    CHECK(error->code() == ErrorCode::kWriteFailed);
    CHECK(error->message().starts_with(program.refused + " shows an object store as a folder"));
    CHECK(error->help_lines().front() == "write to the store itself: -o s3://bucket/prefix");
    CHECK_FALSE(told->ok);
    CHECK(told->value == program.refused + " in " + folder);
    CHECK(fs::is_empty(folder));
  }
}

}  // namespace shardtool::api
