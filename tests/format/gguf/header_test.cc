#include "lib/format/gguf/header.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "lib/base/error.h"
#include "tests/support/gguf_bytes.h"

namespace shardtool::format::gguf {
namespace {

using test::GgufBytes;

struct Result {
  Header header;
  std::vector<ProblemKind> problems;
  i64 bytes_read = 0;
};

/// Reads bytes that are followed by zeros up to `size`.
Result read(const std::string& bytes, i64 size = -1) {
  Result result;
  const Input input{"model.gguf", size < 0 ? std::ssize(bytes) : size,
                    [&](i64 offset, std::span<std::byte> into) {
                      result.bytes_read += std::ssize(into);
                      std::fill(into.begin(), into.end(), std::byte{});
                      if (offset >= std::ssize(bytes)) return;
                      const auto at = static_cast<size_t>(offset);
                      std::memcpy(into.data(), bytes.data() + at,
                                  std::min(into.size(), bytes.size() - at));
                    }};
  result.header =
      read_header(input, [&](Problem problem) { result.problems.push_back(problem.kind); });
  return result;
}

GgufBytes two_tensors() {
  GgufBytes gguf;
  gguf.text("general.architecture", "llama").u32("llama.block_count", 2);
  gguf.tensor("token_embd.weight", {256, 3}, 12, 3 * 144).tensor("norm.weight", {5}, 0, 20);
  return gguf;
}

std::vector<ProblemKind> problems_of(const GgufBytes& gguf) {
  return read(gguf.bytes()).problems;
}

std::vector<ProblemKind> only(ProblemKind kind) {
  return {kind};
}

}  // namespace

TEST_CASE("a header of version 2 or 3 gives pairs and tensors, outermost axis first") {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufBytes gguf(version);
    gguf.text("general.architecture", "llama").i32("x.low", -7).align(64);
    gguf.pair("list", 9,
              GgufBytes::raw(8U) + GgufBytes::raw(std::uint64_t{2}) + GgufBytes::string("a") +
                  GgufBytes::string(""));
    gguf.pair("nested", 9,
              GgufBytes::raw(9U) + GgufBytes::raw(std::uint64_t{1}) + GgufBytes::raw(4U) +
                  GgufBytes::raw(std::uint64_t{2}) + std::string(8, '\1'));
    gguf.pair("large", 10, GgufBytes::raw(std::numeric_limits<std::uint64_t>::max()));
    gguf.tensor("a", {256, 3}, 12, 3 * 144).tensor("scalar", {}, 0, 4);
    const Result result = read(gguf.bytes());
    CHECK(result.problems.empty());
    const Header& header = result.header;
    CHECK(header.version == version);
    CHECK(header.alignment == 64);
    CHECK(header.find("general.architecture")->text == "llama");
    CHECK(header.find("x.low")->number == -7);
    CHECK(header.find("list")->number == 2);
    CHECK(header.find("list")->type == "array of string");
    CHECK(header.find("nested")->type == "array of array of u32");
    CHECK_FALSE(header.find("large")->number.has_value());
    CHECK(header.find("absent") == nullptr);
    REQUIRE(header.tensors.size() == 2);
    CHECK(header.tensors[0].shape == Shape{3, 256});
    CHECK(header.tensors[0].type->name == "Q4_K");
    CHECK(header.tensors[0].bytes == 3 * 144);
    CHECK(header.tensors[0].offset == header.data_begin);
    CHECK(header.data_begin % 64 == 0);
    CHECK(header.tensors[1].offset == header.data_begin + 448);
    CHECK(header.tensors[1].bytes == 4);
  }
}

TEST_CASE("every block type has the bytes of its blocks, and rows are whole blocks") {
  for (const BlockType& type : block_types()) {
    CAPTURE(type.name);
    const auto elements = static_cast<std::uint64_t>(type.elements);
    GgufBytes gguf;
    gguf.tensor("t", {2 * elements, 3}, type.id, static_cast<std::uint64_t>(6 * type.bytes));
    const Result result = read(gguf.bytes());
    CHECK(result.problems.empty());
    REQUIRE(result.header.tensors.size() == 1);
    CHECK(result.header.tensors[0].bytes == 6 * type.bytes);
    if (type.elements == 1) continue;
    GgufBytes odd;
    odd.tensor("t", {2 * elements + 1, 3}, type.id, 0);
    CHECK(problems_of(odd) == only(ProblemKind::kTensorSize));
  }
}

TEST_CASE("each kind of defect is reported as such") {
  const auto defect = [](auto change) {
    GgufBytes gguf = two_tensors();
    change(gguf);
    return problems_of(gguf);
  };
  using Kind = ProblemKind;
  CHECK(problems_of(two_tensors()).empty());
  CHECK(read("GGUX" + two_tensors().bytes().substr(4)).problems == only(Kind::kForeignFormat));
  CHECK(problems_of(GgufBytes(1)) == only(Kind::kForeignFormat));
  CHECK(problems_of(GgufBytes(4)) == only(Kind::kForeignFormat));
  CHECK(problems_of(GgufBytes(0x03000000)) == only(Kind::kForeignFormat));
  CHECK(defect([](GgufBytes& g) { g.pair("x", 13, ""); }) == only(Kind::kHeaderInvalid));
  CHECK(defect([](GgufBytes& g) { g.pair("x", 7, "\2"); }) == only(Kind::kHeaderInvalid));
  CHECK(defect([](GgufBytes& g) { g.u32("llama.block_count", 3); }) == only(Kind::kHeaderInvalid));
  CHECK(defect([](GgufBytes& g) { g.u32("general.alignment", 24); }) == only(Kind::kHeaderInvalid));
  CHECK(defect([](GgufBytes& g) { g.u16("general.alignment", 32); }) == only(Kind::kHeaderInvalid));
  CHECK(defect([](GgufBytes& g) { g.tensor(std::string(65, 'n'), {1}, 0, 4); }) ==
        only(Kind::kHeaderInvalid));
  CHECK(defect([](GgufBytes& g) {
          g.tensor("t", {1, 1, 1, 1, 1}, 0, 4);
        }) == only(Kind::kHeaderInvalid));
  CHECK(defect([](GgufBytes& g) { g.tensor_at("t", {1}, 0, 8); })[0] == Kind::kHeaderInvalid);
  CHECK(defect([](GgufBytes& g) { g.tensor("norm.weight", {1}, 0, 4); })[0] == Kind::kTensorTwice);
  CHECK(defect([](GgufBytes& g) { g.tensor("t", {1}, 5, 0); }) == only(Kind::kDtype));
  CHECK(defect([](GgufBytes& g) {
          g.tensor("t", {std::uint64_t{1} << 62, std::uint64_t{1} << 62}, 0, 0);
        }) == only(Kind::kTensorSize));
  CHECK(defect([](GgufBytes& g) { g.tensor("t", {std::uint64_t{1} << 63}, 0, 0); }) ==
        only(Kind::kTensorSize));
  CHECK(defect([](GgufBytes& g) { g.tensor_at("t", {1}, 0, 0); }) == only(Kind::kOverlap));
  CHECK(defect([](GgufBytes& g) { g.data(1024).tensor("t", {1}, 0, 4); }) == only(Kind::kHole));
  CHECK(defect([](GgufBytes& g) { g.data(64); }) == only(Kind::kTruncated));
  CHECK(defect([](GgufBytes& g) { g.data(4096); }) == only(Kind::kTrailingBytes));
}

TEST_CASE("a header that ends at any byte is truncated, and never more is read") {
  const std::string whole = two_tensors().header();
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const Result result = read(whole.substr(0, size));
    REQUIRE_FALSE(result.problems.empty());
    CHECK(result.problems.front() == ProblemKind::kTruncated);
    CHECK(result.header.tensors.empty());
  }
}

TEST_CASE("counts and lengths in a file cost no memory and no reading") {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;
  constexpr i64 kSparse = i64{1} << 40;
  GgufBytes tensors;
  CHECK(read(tensors.counts(kHuge, 0).bytes()).problems == only(ProblemKind::kTruncated));
  CHECK(read(tensors.counts(0, kHuge).bytes()).problems == only(ProblemKind::kTruncated));
  // In a large sparse file, the counts themselves are the limit.
  CHECK(read(tensors.counts(1 << 24, 0).bytes(), kSparse).problems ==
        only(ProblemKind::kHeaderLength));
  CHECK(read(tensors.counts(0, 1 << 24).bytes(), kSparse).problems ==
        only(ProblemKind::kHeaderLength));
  GgufBytes text;
  text.pair("x", 8, GgufBytes::raw(kHuge));
  CHECK(read(text.bytes()).problems == only(ProblemKind::kTruncated));
  GgufBytes list;
  list.pair("x", 9, GgufBytes::raw(10U) + GgufBytes::raw(kHuge));
  CHECK(read(list.bytes()).problems == only(ProblemKind::kTruncated));
  GgufBytes long_text;
  long_text.pair("x", 8, GgufBytes::raw(std::uint64_t{1} << 35));
  const Result result = read(long_text.bytes(), kSparse);
  CHECK(result.problems == only(ProblemKind::kHeaderLength));
  CHECK(result.bytes_read <= 1 << 20);
  std::string nested;
  for (int depth = 0; depth < 9; ++depth) {
    nested += GgufBytes::raw(9U) + GgufBytes::raw(std::uint64_t{1});
  }
  GgufBytes deep;
  deep.pair("x", 9, nested);
  CHECK(read(deep.bytes()).problems == only(ProblemKind::kHeaderInvalid));
}

}  // namespace shardtool::format::gguf
