#include "lib/store/local/sync_all.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/faulty_syscalls.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::store {
namespace {

using test::TempFolder;
using testing::Call;
using testing::FaultySyscalls;

std::deque<File> new_files(const TempFolder& folder, int count) {
  std::deque<File> files;
  for (int i = 0; i < count; ++i) files.push_back(create_new(folder / std::to_string(i)));
  return files;
}

TEST_CASE("every file is synced once, however many there are") {
  for (const int count : {0, 1, 7, 8, 100}) {
    const TempFolder folder;
    const auto files = new_files(folder, count);
    FaultySyscalls faults;
    sync_all(files);
    CHECK(faults.count(Call::kFsync) == count);
  }
}

TEST_CASE("one failure among many files is the failure of all") {
  const TempFolder folder;
  const auto files = new_files(folder, 20);
  FaultySyscalls faults;
  for (int n = 1; n <= 20; ++n) {
    faults.heal();
    faults.fail(Call::kFsync, n, EIO);
    CHECK_ERROR(kWriteFailed, (sync_all(files), 0));
    CHECK(faults.count(Call::kFsync) == 20);
  }
}

TEST_CASE("of several failures the first file's is told") {
  const TempFolder folder;
  const auto files = new_files(folder, 20);
  FaultySyscalls faults;
  faults.fail_all(Call::kFsync, EIO);
  const auto error = testing::error_of([&] { return sync_all(files), 0; });
  REQUIRE(error);
  CHECK(error->place()->file == folder / "0");
}

}  // namespace
}  // namespace shardtool::store
