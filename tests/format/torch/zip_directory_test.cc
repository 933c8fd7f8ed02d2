#include "lib/format/torch/zip_directory.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/generators.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
#include "tests/support/torch_files.h"

namespace shardtool::format::torch {
namespace {

using namespace std::string_literals;
using test::TempFolder;
using test::zip_archive;
using test::ZipForm;
using test::ZipPart;

ZipDirectory read_zip(const TempFolder& folder, const std::string& archive) {
  const store::File file = store::open_read(folder.write("a.zip", archive));
  return read_zip_directory(file, 0, static_cast<i64>(archive.size()));
}

const std::vector<ZipPart> kParts = {
    {"a/data.pkl", "pickle"}, {"a/data/0", "0123456789"}, {"a/data/1", ""}, {"a/version", "3\n"}};

TEST_CASE("records are found in every form of the archive, also inside a file") {
  const TempFolder folder;
  CHECK(rc::check([&] {
    const ZipForm form{*rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(),
                       *rc::gen::arbitrary<bool>(), static_cast<size_t>(*gen::between(1, 100))};
    std::vector<ZipPart> parts;
    for (i64 i = *gen::between(0, 5); i > 0; --i) {
      parts.push_back({"a/" + std::to_string(i), *rc::gen::arbitrary<std::string>()});
    }
    const std::string before = *rc::gen::arbitrary<std::string>();
    const std::string archive = zip_archive(parts, form);
    const std::string text = before + archive + "after";
    const store::File file = store::open_read(folder.write("a.zip", text));
    const auto directory =
        read_zip_directory(file, static_cast<i64>(before.size()), static_cast<i64>(archive.size()));
    RC_ASSERT(directory.records.size() == parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      const ZipRecord& record = directory.records[i];
      RC_ASSERT(record.name == parts[i].name);
      RC_ASSERT(text.substr(static_cast<size_t>(record.offset),
                            static_cast<size_t>(record.bytes)) == parts[i].content);
    }
  }));
}

TEST_CASE("an archive that is cut or has bytes around it is malformed") {
  const TempFolder folder;
  const std::string archive = zip_archive(kParts);
  for (size_t bytes = 0; bytes < archive.size(); ++bytes) {
    CHECK_ERROR(kMalformed, read_zip(folder, archive.substr(0, bytes)));
  }
  CHECK_ERROR(kMalformed, read_zip(folder, archive + "x"));
  CHECK_ERROR(kMalformed, read_zip(folder, "x" + archive));
}

TEST_CASE("an archive that contradicts itself is refused") {
  const TempFolder folder;
  const std::string archive = zip_archive(kParts, {false, false, false, 1});
  const size_t directory = archive.find("PK\x01\x02");
  const size_t second = archive.find("PK\x01\x02", directory + 1);
  const size_t end = archive.find("PK\x05\x06");
  const auto with = [&archive](size_t at, const std::string& bytes) {
    return std::string(archive).replace(at, bytes.size(), bytes);
  };
  struct Lie {
    std::string what;
    std::string archive;
    ErrorCode code;
  };
  using enum ErrorCode;
  const std::vector<Lie> lies = {
      {"another number of entries", with(end + 8, "\5\0\5\0"s), kMalformed},
      {"fewer entries", with(end + 8, "\3\0\3\0"s), kMalformed},
      {"a part of several", with(end + 4, "\1"), kUnsupported},
      {"entries in other parts", with(end + 8, "\3"), kUnsupported},
      {"another place of the directory", with(end + 16, "\1"), kMalformed},
      {"a comment", with(end + 20, "\1"), kMalformed},
      {"no end", with(end, "XX"), kMalformed},
      {"no entry", with(directory, "XX"), kMalformed},
      {"a compressed record", with(directory + 10, "\x08"), kUnsupported},
      {"an encrypted record", with(directory + 8, "\x01"), kUnsupported},
      {"an unknown flag", with(directory + 8, "\x10"), kUnsupported},
      {"two sizes", with(directory + 20, "\x05"), kMalformed},
      {"sizes unlike the local header's", with(directory + 20, "\5\0\0\0\5\0\0\0"s), kMalformed},
      {"a record beyond the next", with(directory + 20, "\xff\0\0\0\xff\0\0\0"s), kMalformed},
      {"a size in a missing extra field", with(directory + 20, std::string(8, '\xff')), kMalformed},
      {"another part", with(directory + 34, "\1"), kMalformed},
      {"a header elsewhere", with(second + 42, "\2"), kMalformed},
      {"a header outside", with(second + 42, "\xff\xff\xff\x7f"), kMalformed},
      {"two records in one place", with(second + 42, "\0\0\0\0"s), kMalformed},
      {"another name", with(directory + 46, "b"), kMalformed},
      {"a name twice", with(archive.rfind("a/data/1"), "a/data/0"), kMalformed},
      {"a long name", with(directory + 28, "\xff\xff"), kMalformed},
      {"no local header", with(0, "XX"), kMalformed},
      {"another local method", with(8, "\x08"), kMalformed},
      {"other local flags", with(6, "\x08"), kMalformed},
      {"another local name", with(30, "b"), kMalformed},
      {"a long local extra field", with(28, "\xff\xff"), kMalformed},
  };
  CHECK(read_zip(folder, archive).records.size() == kParts.size());
  for (const Lie& lie : lies) {
    CAPTURE(lie.what);
    const auto error = testing::error_of([&] { return read_zip(folder, lie.archive); });
    REQUIRE(error.has_value());
    CHECK(error->code() == lie.code);
  }
}

TEST_CASE("a zip64 end record that contradicts the rest is malformed") {
  const TempFolder folder;
  const std::string archive = zip_archive(kParts);
  const size_t end = archive.find("PK\x06\x06");
  for (const size_t at : {end, end + 4, end + 16, end + 20, end + 24, end + 32, end + 40, end + 48,
                          end + 56 + 4, end + 56 + 8, end + 56 + 16}) {
    std::string changed = archive;
    changed[at] = static_cast<char>(changed[at] + 7);
    CAPTURE(at - end);
    CHECK_ERROR(kMalformed, read_zip(folder, changed));
  }
}

}  // namespace
}  // namespace shardtool::format::torch
