// Catalogue of bad input, rows A: the container around the header.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/hostile/verdict.h"

namespace shardtool {
namespace {

using test::refusal;
using test::refusal_of_bytes;
using test::safetensors_bytes;
using test::says;

constexpr const char* kOneByte = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

}  // namespace

TEST_CASE("A01 A02 a file of fewer than 8 bytes is refused") {
  for (size_t size = 0; size < 8; ++size) {
    const Error error = refusal_of_bytes(std::string(size, '\x02'));
    CHECK(error.code() == ErrorCode::kMalformed);
    CHECK(says(error, "need 8 bytes"));
  }
}

TEST_CASE("A03 A05 A07 a length beyond the file or the format is refused with both numbers") {
  struct Row {
    std::uint64_t length;
    std::string in_message;
  };
  const std::vector<Row> rows = {{60, "60 bytes in a file of 8"},
                                 {100'000'001, "100000001 bytes in a file of 8"},
                                 {std::uint64_t{1} << 63, "9223372036854775808 bytes"},
                                 {~std::uint64_t{0}, "18446744073709551615 bytes"},
                                 {~std::uint64_t{0} - 7, "18446744073709551608 bytes"}};
  for (const Row& row : rows) {
    const Error error = refusal_of_bytes(length_bytes(row.length));
    CHECK(error.code() == ErrorCode::kMalformed);
    CHECK(says(error, row.in_message));
  }
}

TEST_CASE("A04 a header of no bytes is refused, the empty object is not") {
  CHECK(refusal_of_bytes(length_bytes(0)).code() == ErrorCode::kMalformed);
  CHECK(test::open_header("{}", 0).tensors.empty());
}

TEST_CASE("A06 a header of exactly 100,000,000 bytes is read, padded with spaces") {
  std::string json = kOneByte;
  json.resize(100'000'000, ' ');
  const auto checkpoint = test::open_header(json, 1);
  REQUIRE(checkpoint.tensors.size() == 1);
  CHECK(checkpoint.tensors[0].offset == 100'000'008);
}

TEST_CASE("A09 data that is short by a byte is refused with the tensor and both sizes") {
  const Error error = test::refusal_of_header(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
      11);
  CHECK(error.code() == ErrorCode::kMalformed);
  CHECK(error.tensor_name() == "b");
  CHECK(says(error, "found: 11 bytes of data"));
  CHECK(says(error, "expected: 12 bytes of data"));
}

TEST_CASE("A10 anything after the data is refused") {
  CHECK(test::refusal_of_header(kOneByte, 2).code() == ErrorCode::kMalformed);
  const std::string zip = "PK\x03\x04 hidden archive";
  CHECK(refusal_of_bytes(safetensors_bytes(kOneByte, "x" + zip)).code() == ErrorCode::kMalformed);
}

TEST_CASE("A11 a header that is cut anywhere is refused") {
  const std::string whole = safetensors_bytes(kOneByte, "");
  for (size_t size = 8; size < whole.size(); ++size) {
    CHECK(refusal_of_bytes(whole.substr(0, size)).exit_status() == 4);
  }
  const std::string json = kOneByte;
  for (size_t size = 2; size < json.size(); ++size) {
    CHECK(test::refusal_of_header(json.substr(0, size), 0).code() == ErrorCode::kHeaderJson);
  }
}

TEST_CASE("A12 zeros and noise are refused") {
  CHECK(refusal_of_bytes(std::string(1 << 20, '\0')).exit_status() == 4);
  std::minstd_rand random(7);
  for (int round = 0; round < 20; ++round) {
    std::string noise(1 << 16, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    CHECK(refusal_of_bytes(noise).exit_status() == 4);
  }
}

TEST_CASE("A13 A14 A15 other formats are named, with what to do") {
  struct Row {
    std::string bytes;
    std::string what;
  };
  const std::string rest(200, '\0');
  const std::vector<Row> rows = {
      {"PK\x03\x04\x14" + std::string("archive/data.pkl") + rest, "pickle"},
      {"\x80\x02\x8a\x0a" + std::string("lm_head") + rest, "pickle"},
      {"\x80\x04\x95" + std::string("abcdefgh") + rest, "pickle"},
      {"GGUF\x03" + rest, "GGUF"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "git lfs pull"},
      {"<!DOCTYPE html><html><body>404</body></html>", "fetch the file again"},
      {"<html><head><title>403 Forbidden</title>", "fetch the file again"},
      {"\x89HDF\r\n\x1a\n" + rest, "HDF5"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const Error error = refusal_of_bytes(row.bytes);
    CHECK(error.code() == ErrorCode::kUnsupported);
    CHECK(says(error, row.what));
  }
}

TEST_CASE("a valid file whose length begins like a pickle is no pickle") {
  std::string json = kOneByte;
  json.resize(0x280, ' ');  // 80 02 00 ...
  CHECK(test::open_header(json, 1).tensors.size() == 1);
}

TEST_CASE("A16 A20 a folder or a dangling link is no file") {
  const test::TempFolder folder;
  std::filesystem::create_directories(folder / "model.safetensors");
  CHECK(refusal(folder / "model.safetensors").exit_status() == 4);
  std::filesystem::create_symlink("nothing", folder / "link.safetensors");
  CHECK(refusal(folder / "link.safetensors").code() == ErrorCode::kFileMissing);
}

TEST_CASE("A18 a sparse file of 8 TB with one huge tensor opens") {
  const test::TempFolder folder;
  const std::string json =
      R"({"w":{"dtype":"U8","shape":[8000000000000],"data_offsets":[0,8000000000000]}})";
  const std::string path = folder.write("model.safetensors", safetensors_bytes(json, ""));
  REQUIRE(truncate(path.c_str(), static_cast<off_t>(8 + json.size() + 8'000'000'000'000)) == 0);
  CHECK(format::open_checkpoint(path).tensors[0].bytes == 8'000'000'000'000);
}

TEST_CASE("A19 a file without read permission is refused") {
  const test::TempFolder folder;
  const std::string path = folder.write("model.safetensors", safetensors_bytes(kOneByte, "x"));
  REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(chmod(path.c_str(), 0) == 0);
  const uid_t user = geteuid();
  if (user == 0) REQUIRE(seteuid(65534) == 0);  // root reads every file
  const auto code = refusal(path).code();
  REQUIRE(seteuid(user) == 0);
  CHECK(code == ErrorCode::kUnreadable);
}

}  // namespace shardtool
