#include "lib/store/reader.h"

#include <doctest/doctest.h>

#include "tests/support/served_store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace shardtool;
using test::ServedStore;

namespace {

ServedStore& store_with(const std::map<std::string, std::string>& objects) {
  ServedStore& store = ServedStore::instance();
  store.clear();
  for (const auto& [key, bytes] : objects) store.put(key, bytes);
  store::forget_listing("s3://bucket");
  return store;
}

std::string read_at(const store::Reader& reader, i64 offset, size_t bytes) {
  std::string into(bytes, '?');
  reader.read(std::as_writable_bytes(std::span(into)), offset);
  return into;
}

}  // namespace

TEST_CASE("small reads of an object share a request and give its bytes") {
  std::string bytes(2 << 20, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  const ServedStore& store = store_with({{"p/x", bytes}});
  const store::Reader reader = store::open_reader("s3://bucket/p/x");
  CHECK(reader.identity().size == std::ssize(bytes));
  for (const size_t at : {0u, 8u, 100'000u, 400'000u}) {
    CHECK((read_at(reader, static_cast<i64>(at), 1000) == bytes.substr(at, 1000)));
  }
  CHECK(store.requests() == 2);
  const size_t rest = bytes.size() - 10;
  CHECK((read_at(reader, static_cast<i64>(rest), 10) == bytes.substr(rest)));
  CHECK((read_at(reader, 7, 1 << 20) == bytes.substr(7, 1 << 20)));
  CHECK_ERROR(kInputChanged, read_at(reader, static_cast<i64>(rest), 11));
  CHECK_ERROR(kInputChanged, read_at(reader, -1, 1));
}

TEST_CASE("a prefix is listed once and answers for the objects below it") {
  const ServedStore& store = store_with({{"p/a", "1"}, {"p/b", "22"}, {"p/below/c", "333"}});
  CHECK(store::is_folder("s3://bucket/p"));
  CHECK(store::is_file("s3://bucket/p/a"));
  CHECK_FALSE(store::is_file("s3://bucket/p/z"));
  CHECK(store::size_of("s3://bucket/p/b") == 2);
  CHECK(store::names_below("s3://bucket/p") == std::vector<std::string>{"a", "b"});
  CHECK(store::folders_in("s3://bucket/p") == std::vector<std::string>{"below"});
  CHECK(store.requests() == 1);
  CHECK_FALSE(store::exists("s3://bucket/q"));
  CHECK_FALSE(store::is_folder("s3://bucket/p/a"));
  CHECK_ERROR(kFileMissing, store::open_reader("s3://bucket/p/z"));
}

TEST_CASE("a place that is looked at again shows what was written meanwhile") {
  ServedStore& store = store_with({{"p/a", "1"}});
  CHECK_FALSE(store::is_file("s3://bucket/p/b"));
  CHECK_FALSE(store::is_folder("s3://bucket/pp"));
  store.put("p/b", "2");
  store.put("pp/c", "3");
  store::forget_listing("s3://bucket/p");
  CHECK(store::is_file("s3://bucket/p/b"));
  CHECK_FALSE(store::is_folder("s3://bucket/pp"));
}

TEST_CASE("the questions about places hold for local files") {
  const test::TempFolder folder;
  const std::string file = folder.write("below/x", "text");
  CHECK(store::is_folder(folder.path()));
  CHECK(store::folders_in(folder.path()) == std::vector<std::string>{"below"});
  CHECK(store::is_file(file));
  CHECK(store::size_of(file) == 4);
  CHECK(store::exists(folder / "below"));
  CHECK_FALSE(store::exists(folder / "other"));
  CHECK(store::resolved(folder / "below/../below/x") == store::resolved(file));
  CHECK(store::resolved("s3://bucket/a/../b") == "s3://bucket/a/../b");
  CHECK(store::read_source_text(file, 4) == "text");
  CHECK(read_at(store::open_reader(file), 1, 2) == "ex");
}

TEST_CASE("a text above its limit is refused on an object store too") {
  store_with({{"p/a", "12345"}});
  CHECK(store::read_source_text("s3://bucket/p/a", 5) == "12345");
  CHECK_ERROR(kLimit, store::read_source_text("s3://bucket/p/a", 4));
}
