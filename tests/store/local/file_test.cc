#include "lib/store/local/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <rapidcheck.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "lib/store/local/shared_folder.h"
#include "lib/store/local/tree.h"
#include "tests/support/faulty_syscalls.h"
#include "tests/support/played_device.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::store {
namespace {

using test::TempFolder;
using testing::Call;
using testing::FaultySyscalls;

std::string text_of_size(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::span<std::byte> writable(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

std::string read_back(const std::string& path) {
  return read_text(path, i64{1} << 30);
}

/// Cuts a text into parts of these lengths to read into.
std::vector<iovec> cut(std::string& text, const std::vector<size_t>& lengths) {
  std::vector<iovec> parts;
  char* at = text.data();
  for (const size_t length : lengths) {
    parts.push_back({at, length});
    at += length;
  }
  return parts;
}

TEST_CASE("a scattered read puts every byte in its place, however short the reads fall") {
  const TempFolder folder;
  const std::string content = text_of_size(5000);
  const File file = open_read(folder.write("f", content));
  FaultySyscalls faults;
  CHECK(rc::check("scattered = contiguous", [&] {
    faults.heal();
    faults.shorten(Call::kPreadv, *rc::gen::inRange<size_t>(1, 300));
    faults.fail(Call::kPreadv, *rc::gen::inRange(1, 5), EINTR);
    const auto lengths = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 100));
    size_t total = 0;
    for (const size_t length : lengths) total += length;
    RC_PRE(total <= 4000);
    const auto offset = *rc::gen::inRange<size_t>(0, 1000);
    std::string into(total, '?');
    std::vector<iovec> parts = cut(into, lengths);
    read_scattered(file, parts, static_cast<i64>(offset));
    RC_ASSERT(into == content.substr(offset, total));
  }));
}

TEST_CASE("a scattered read takes more parts than one call can") {
  const TempFolder folder;
  const std::string content = text_of_size(3000);
  const File file = open_read(folder.write("f", content));
  std::string into(content.size(), '?');
  std::vector<iovec> parts = cut(into, std::vector<size_t>(content.size(), 1));
  FaultySyscalls faults;
  read_scattered(file, parts, 0);
  CHECK(into == content);
  CHECK(faults.count(Call::kPreadv) == 3);  // 1024 parts per call
}

TEST_CASE("a read past the end says that the input changed, and at which byte") {
  const TempFolder folder;
  const File file = open_read(folder.write("f", "0123456789"));
  std::string into(8, '?');
  const auto error = testing::error_of([&] { return read_exact(file, writable(into), 4), 0; });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kInputChanged);
  CHECK(error->message().find("byte 10") != std::string::npos);
  CHECK(error->place()->file == file.path());
}

TEST_CASE("an I/O error while reading is unreadable input, and reading nothing reads nothing") {
  const TempFolder folder;
  const File file = open_read(folder.write("f", "0123456789"));
  std::string into(8, '?');
  FaultySyscalls faults;
  faults.fail(Call::kPreadv, 1, EIO);
  CHECK_ERROR(kUnreadable, (read_exact(file, writable(into), 0), 0));
  read_exact(file, {}, 1000);
  CHECK(faults.count(Call::kPreadv) == 1);
}

TEST_CASE("a write puts every byte in its place, however short the writes fall") {
  const TempFolder folder;
  const std::string content = text_of_size(1000);
  const File file = create_new(folder / "f");
  FaultySyscalls faults;
  faults.shorten(Call::kPwrite, 7);
  faults.fail(Call::kPwrite, 3, EINTR);
  write_exact(file, bytes_of(content).subspan(400), 400);
  write_exact(file, bytes_of(content).first(400), 0);
  CHECK(read_back(folder / "f") == content);
}

TEST_CASE("failures of writing have the code that says what to do") {
  const TempFolder folder;
  const File file = create_new(folder / "f");
  FaultySyscalls faults;
  for (const int reason : {ENOSPC, EDQUOT, EFBIG}) {
    faults.fail(Call::kPwrite, 1, reason);
    CHECK_ERROR(kNoSpace, (write_exact(file, bytes_of("abc"), 0), 0));
    faults.fail(Call::kFallocate, 1, reason);
    CHECK_ERROR(kNoSpace, (allocate(file, 100), 0));
  }
  faults.fail(Call::kPwrite, 1, EIO);
  CHECK_ERROR(kWriteFailed, (write_exact(file, bytes_of("abc"), 0), 0));
  faults.fail(Call::kFsync, 1, EIO);
  CHECK_ERROR(kWriteFailed, (sync(file), 0));
  faults.fail(Call::kOpenat, 1, EMFILE);
  CHECK_ERROR(kLimit, create_new(folder / "g"));
}

TEST_CASE("a failed sync is not tried again") {
  const TempFolder folder;
  const File file = create_new(folder / "f");
  FaultySyscalls faults;
  faults.fail(Call::kFsync, 1, EINTR);
  CHECK_ERROR(kWriteFailed, (sync(file), 0));
  CHECK(faults.count(Call::kFsync) == 1);
}

TEST_CASE("a failed close is reported, an interrupted one has closed") {
  const TempFolder folder;
  File file = create_new(folder / "f");
  FaultySyscalls faults;
  faults.fail(Call::kClose, 1, EIO);
  CHECK_ERROR(kWriteFailed, (file.close_checked(), 0));
  CHECK(!file.is_open());
  File other = create_new(folder / "g");
  faults.fail(Call::kClose, 1, EINTR);
  other.close_checked();
  CHECK(!other.is_open());
}

TEST_CASE("allocation sets the size, also where the file system cannot reserve space") {
  const TempFolder folder;
  FaultySyscalls faults;
  i64 size = 0;
  for (const int reason : {0, EOPNOTSUPP, ENOSYS, EINVAL}) {
    const File file = create_new(folder / std::to_string(reason));
    if (reason != 0) faults.fail(Call::kFallocate, 1, reason);
    allocate(file, size);
    CHECK(identity(file).size == size);
    size += 10'000;
  }
  CHECK(faults.count(Call::kFtruncate) == 4);  // one for the empty file, one per file that fails
}

TEST_CASE("beyond the process's file size limit there is no space, and no signal kills") {
  const TempFolder folder;
  const File file = create_new(folder / "f");
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{1000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto error =
      testing::error_of([&] { return write_exact(file, bytes_of(text_of_size(2000)), 0), 0; });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kNoSpace);
  CHECK(error->help_lines().size() == 1);
}

TEST_CASE("what is not a regular file is refused, and a pipe does not hang") {
  const TempFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_ERROR(kUnreadable, open_read(folder / "pipe"));
  CHECK_ERROR(kUnreadable, open_read(folder.path()));
  CHECK_ERROR(kUnreadable, open_read("/dev/null"));
  CHECK_ERROR(kFileMissing, open_read(folder / "absent"));
  CHECK_ERROR(kFileMissing, open_read(folder.write("f", "") + "/below"));
}

TEST_CASE("a missing file whose name is a pattern comes with a hint") {
  const TempFolder folder;
  const auto plain = testing::error_of([&] { return open_read(folder / "absent"); });
  const auto pattern = testing::error_of([&] { return open_read(folder / "*.safetensors"); });
  CHECK(plain->help_lines().empty());
  CHECK(pattern->help_lines().size() == 1);
}

TEST_CASE("inputs are read through symbolic links") {
  const TempFolder folder;
  folder.write("blob", "content");
  std::filesystem::create_symlink("blob", folder / "link");
  CHECK(read_back(folder / "link") == "content");
}

TEST_CASE("a new file takes no name that is taken, not even by a dangling link") {
  const TempFolder folder;
  folder.write("f", "old");
  std::filesystem::create_symlink("elsewhere", folder / "link");
  CHECK_ERROR(kOutputExists, create_new(folder / "f"));
  CHECK_ERROR(kOutputExists, create_new(folder / "link"));
  CHECK(!std::filesystem::exists(folder / "elsewhere"));
  CHECK(read_back(folder / "f") == "old");
  CHECK_ERROR(kWriteFailed, create_new(folder / "absent/f"));
}

TEST_CASE("the modes of new files follow the umask") {
  const TempFolder folder;
  for (const mode_t mask : {0077U, 0027U, 0000U}) {
    const std::string path = folder / std::to_string(mask);
    const mode_t before = umask(mask);
    const File file = create_new(path);
    umask(before);
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == (0666U & ~mask));
  }
}

TEST_CASE("a text is read whole up to its limit") {
  const TempFolder folder;
  const std::string path = folder.write("f", "12345");
  CHECK(read_text(path, 5) == "12345");
  CHECK_ERROR(kLimit, read_text(path, 4));
  CHECK(read_text(folder.write("empty", ""), 0).empty());
}

TEST_CASE("a small file that cannot be written whole leaves nothing behind") {
  const TempFolder folder;
  FaultySyscalls faults;
  for (const Call call : {Call::kPwrite, Call::kFsync, Call::kClose}) {
    faults.fail(call, 1, EIO);
    CHECK_ERROR(kWriteFailed, (write_new_file(folder / "f", "text"), 0));
    CHECK(!std::filesystem::exists(folder / "f"));
  }
  write_new_file(folder / "f", "text");
  CHECK(read_back(folder / "f") == "text");
  CHECK_ERROR(kOutputExists, (write_new_file(folder / "f", "more"), 0));
  CHECK(read_back(folder / "f") == "text");
}

TEST_CASE("a file that is written to has another identity") {
  const TempFolder folder;
  const File file = create_new(folder / "f");
  const FileIdentity empty = identity(file);
  CHECK(identity(open_read(folder / "f")) == empty);
  write_exact(file, bytes_of("abc"), 0);
  CHECK(identity(file) != empty);
  CHECK(identity(file).size == 3);
  CHECK(identity(create_new(folder / "g")).inode != empty.inode);
}

TEST_CASE("where the file system refuses direct I/O the file is closed, not an error") {
  const TempFolder folder;
  const std::string path = folder.write("f", "text");
  FaultySyscalls faults;
  faults.fail(Call::kOpenat, 1, EINVAL);
  CHECK(!open_read_direct(path).is_open());
  faults.fail(Call::kOpenat, 1, EINVAL);
  CHECK(!open_write_direct(path).is_open());
}

TEST_CASE("direct I/O of aligned pages moves the same bytes") {
  const TempFolder folder;
  const auto page = static_cast<size_t>(kDirectAlignment);
  const std::string content = text_of_size(2 * page);
  const File file = create_new(folder / "f");
  allocate(file, kDirectAlignment * 2);
  const File writer = open_write_direct(file.path());
  const File reader = open_read_direct(file.path());
  if (!writer.is_open() || !reader.is_open()) {
    MESSAGE("skipped: this file system has no direct I/O");
    return;
  }
  alignas(4096) static std::byte buffer[2 * kDirectAlignment];
  std::copy_n(bytes_of(content).data(), 2 * page, buffer);
  write_exact(writer, buffer, 0);
  CHECK(read_back(file.path()) == content);
  read_exact(reader, std::span(buffer).first(page), kDirectAlignment);
  CHECK(std::equal(buffer, buffer + page, bytes_of(content).data() + page));
}

TEST_CASE("direct I/O goes on after whole pages, and stops after a part of one or a refusal") {
  const TempFolder folder;
  const auto page = static_cast<size_t>(kDirectAlignment);
  std::string content = text_of_size(4 * page);
  const File file = create_new(folder / "f");
  FaultySyscalls faults;
  struct Row {
    size_t longest;
    int refused_call;
    i64 moved;
  };
  const i64 all = 4 * kDirectAlignment;
  for (const Row& row : {Row{0, 0, all}, Row{page, 0, all}, Row{page, 1, 0},
                         Row{page, 3, 2 * kDirectAlignment}, Row{page + 1, 0, 4097}}) {
    faults.heal();
    for (const Call call : {Call::kPwrite, Call::kPreadv}) {
      if (row.longest != 0) faults.shorten(call, row.longest);
      if (row.refused_call != 0) faults.fail(call, row.refused_call, EINVAL);
    }
    CHECK(write_direct(file, bytes_of(content), 0) == row.moved);
    std::string into(content.size(), '?');
    CHECK(read_direct(file, writable(into), 0) == row.moved);
    CHECK(into.substr(0, static_cast<size_t>(row.moved)) ==
          content.substr(0, static_cast<size_t>(row.moved)));
  }
  faults.fail(Call::kPwrite, 1, ENOSPC);
  CHECK_ERROR(kNoSpace, (write_direct(file, bytes_of(content), 0)));
  faults.fail(Call::kPreadv, 1, EIO);
  CHECK_ERROR(kUnreadable, (read_direct(file, writable(content), 0)));
}

TEST_CASE("the alignment of addresses is what the system says, a page where it does not say") {
  const TempFolder folder;
  const std::string path = folder.write("f", "text");
  for (const i64 alignment : {4, 512, 4096}) {
    const testing::PlayedDevice device(alignment);
    CHECK(memory_alignment(open_read_direct(path)) == alignment);
  }
  const testing::PlayedDevice quiet(4, testing::PlayedDevice::Announces::kNothing);
  CHECK(memory_alignment(open_read_direct(path)) == kDirectAlignment);
}

TEST_CASE("a file that has no direct I/O, or wants more than a page, is not opened for it") {
  const TempFolder folder;
  const std::string path = folder.write("f", "text");
  for (const i64 alignment : {0, 12, 8192}) {
    const testing::PlayedDevice device(alignment);
    CHECK(!open_read_direct(path).is_open());
  }
}

TEST_CASE("a direct read ends at the end of the file") {
  const TempFolder folder;
  const File file = open_read(folder.write("f", text_of_size(5000)));
  std::string into(8192, '?');
  CHECK(read_direct(file, writable(into), 0) == 5000);
  CHECK(read_direct(file, writable(into), 8192) == 0);
}

TEST_CASE("a file is in the page cache after it was read, and not after it was dropped from it") {
  const TempFolder folder;
  const File file = create_new(folder / "f");
  struct statfs system {};
  REQUIRE(fstatfs(file.fd(), &system) == 0);
  if (system.f_type == TMPFS_MAGIC) {
    MESSAGE("skipped: files in memory are always resident");
    return;
  }
  const i64 size = 4 << 20;
  // The kernel may drop pages early or keep a page in use, so this takes several attempts.
  bool seen = false;
  for (int attempt = 0; attempt < 20 && !seen; ++attempt) {
    write_exact(file, bytes_of(text_of_size(static_cast<size_t>(size))), 0);
    const bool was_resident = is_resident(file, 0, size);
    sync(file);
    REQUIRE(posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED) == 0);
    seen = was_resident && !is_resident(file, 0, size);
  }
  CHECK(seen);
}

TEST_CASE("the limit of open files can be raised to the hard one") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit small{64, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &small) == 0);
  allow_many_files();
  rlimit after{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &after) == 0);
  CHECK(after.rlim_cur == before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("a file is replaced whole, and a rename that fails leaves the old one and nothing else") {
  const TempFolder folder;
  write_new_file(folder / "f", "old");
  put_whole(folder / "new", folder / "f", folder.path(), "text");
  CHECK(read_text(folder / "f", 100) == "text");
  FaultySyscalls faults;
  faults.fail(Call::kRename, 1, EROFS);
  CHECK_ERROR(kWriteFailed, (put_whole(folder / "new", folder / "f", folder.path(), "more"), 0));
  faults.fail(Call::kPwrite, 1, ENOSPC);
  const auto full = testing::error_of(
      [&] { return put_whole(folder / "new", folder / "f", folder.path(), "x"), 0; });
  REQUIRE(full.has_value());
  CHECK(full->code() == ErrorCode::kNoSpace);
  REQUIRE(full->place().has_value());
  CHECK(full->place()->file == folder / "f");
  CHECK(read_text(folder / "f", 100) == "text");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"f"});
}

}  // namespace
}  // namespace shardtool::store
