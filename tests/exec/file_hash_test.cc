#include "lib/exec/files/file_hash.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <span>
#include <string>

#include "kernels/sha/sha.h"
#include "lib/base/interruption.h"
#include "lib/base/sha256.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::exec {
namespace {

std::string content(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * i >> 5);
  return text;
}

TEST_CASE("the hash of every file is that of its bytes, whatever the threads and the memory") {
  CHECK(rc::check("files = messages", [] {
    const test::TempFolder folder;
    std::vector<FileToHash> files;
    std::vector<std::string> expected;
    const int count = *rc::gen::inRange(0, 6);
    for (int i = 0; i < count; ++i) {
      const std::string text = content(*rc::gen::inRange<size_t>(0, 3'000'000));
      files.push_back({folder.write(std::to_string(i), text), std::ssize(text)});
      expected.push_back(sha256_hex(text));
    }
    Resources options;
    options.threads = *rc::gen::inRange(0, 5);
    options.max_memory = *rc::gen::inRange<i64>(1, 8 << 20);
    i64 done = -1;
    options.on_progress = [&](const Progress& progress) { done = progress.bytes_done; };
    RC_ASSERT(hash_files(files, options) == expected);
    i64 total = 0;
    for (const FileToHash& file : files) total += file.bytes;
    RC_ASSERT(done == total);
  }));
}

// Expected values as `git hash-object` prints them.
TEST_CASE("a small file is known by git's hash of a blob") {
  const test::TempFolder folder;
  const auto git_blob = [&](const std::string& text) {
    return hash_files(
        std::vector<FileToHash>{{folder.write("f", text), std::ssize(text), FileHash::kGitBlob}},
        {})[0];
  };
  CHECK(git_blob("") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  CHECK(git_blob("{}\n") == "0967ef424bce6791893e9a57bb952f80fd536e93");
}

TEST_CASE("a file of another size, one that is gone, and a run that is cancelled are errors") {
  const test::TempFolder folder;
  const std::vector<FileToHash> grown = {{folder.write("f", "four"), 3}};
  CHECK_ERROR(kInputChanged, hash_files(grown, {}));
  const std::vector<FileToHash> gone = {{folder / "gone", 3}};
  CHECK_ERROR(kFileMissing, hash_files(gone, {}));
  const std::atomic<bool> cancel = true;
  const Interruptible scope(&cancel);
  const std::vector<FileToHash> whole = {{folder / "f", 4}};
  CHECK_ERROR(kInterrupted, hash_files(whole, {}));
}

}  // namespace
}  // namespace shardtool::exec
