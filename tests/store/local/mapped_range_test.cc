#include "lib/store/local/mapped_range.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::store {
namespace {

std::string text_of(const MappedRange& range, i64 bytes) {
  return {reinterpret_cast<const char*>(range.data()), static_cast<size_t>(bytes)};
}

TEST_CASE("a mapped range has the bytes of the file, at any offset") {
  const test::TempFolder folder;
  std::string content;
  for (int i = 0; i < 5000; ++i) content += std::to_string(i);
  write_new_file(folder / "f", content);
  const File file = open_read(folder / "f");
  CHECK(rc::check("any range", [&] {
    const i64 offset = *rc::gen::inRange<i64>(0, std::ssize(content));
    const i64 bytes = *rc::gen::inRange<i64>(1, std::ssize(content) - offset + 1);
    const MappedRange range(file, offset, bytes,
                            *rc::gen::element(MapAccess::kRead, MapAccess::kReadAndOwnWrites));
    RC_ASSERT(text_of(range, bytes) ==
              content.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes)));
  }));
}

TEST_CASE("writing to a mapped range leaves the file as it is, and moving keeps the bytes") {
  const test::TempFolder folder;
  write_new_file(folder / "f", "abcd");
  const File file = open_read(folder / "f");
  MappedRange range(file, 1, 2, MapAccess::kReadAndOwnWrites);
  range.data()[0] = std::byte{'x'};
  const MappedRange moved(std::move(range));
  CHECK(text_of(moved, 2) == "xc");
  CHECK(read_text(folder / "f", 10) == "abcd");
}

TEST_CASE("a file that cannot be mapped is unreadable") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const File reading(ends[0], "pipe");
  const File writing(ends[1], "pipe");
  CHECK_ERROR(kUnreadable, MappedRange(reading, 0, 1, MapAccess::kRead));
}

}  // namespace
}  // namespace shardtool::store
