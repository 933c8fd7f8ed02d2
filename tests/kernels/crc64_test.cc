#include "kernels/crc64/crc64.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "kernels/crc32/crc32.h"
#include "kernels/crc64/implementation.h"
#include "tests/kernels/crc64_reference.h"
#include "tests/kernels/guarded_page.h"
#include "tests/kernels/text_bytes.h"

namespace shardtool::kernels {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(i64 size) {
  return *rc::gen::container<Bytes>(static_cast<size_t>(size),
                                    rc::gen::cast<std::byte>(rc::gen::arbitrary<std::uint8_t>()));
}

Bytes concatenate(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// a * b mod P by definition: shifts by b's bits.
std::uint64_t reference_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  for (int bit = 63; bit >= 0; --bit) {
    sum = (sum << 1) ^ (sum >> 63 != 0 ? 0x42F0E1EBA9EA3693 : 0);
    if (b >> bit & 1) sum ^= a;
  }
  return sum;
}

/// The message of Rows as contiguous bytes.
Bytes written_out(const Bytes& memory, const Rows& rows, i64 dst_stride) {
  Bytes message(static_cast<size_t>((rows.count - 1) * dst_stride + rows.run));
  for (i64 i = 0; i < rows.count; ++i) {
    std::memcpy(message.data() + i * dst_stride, memory.data() + i * rows.src_stride,
                static_cast<size_t>(rows.run));
  }
  return message;
}

TEST_CASE("the crc of the standard check string is that of CRC-64/ECMA-182") {
  for (const Implementation& implementation : implementations()) {
    CAPTURE(implementation.name);
    const auto message = bytes_of("123456789");
    CHECK(implementation.rows({.first = message.data(), .run = 9}) == 0x6C40DF5F0B497347);
  }
}

TEST_CASE("the portable implementation is always there, and the list is not empty") {
  CHECK(std::string_view(implementations().back().name) == "portable");
}

TEST_CASE("every implementation computes the definition for every length up to 300 bytes") {
  Bytes message;
  for (int size = 1; size <= 300; ++size) {
    message.push_back(static_cast<std::byte>(size * 37 ^ size >> 2));
    const std::uint64_t expected = reference_crc(message);
    for (const Implementation& implementation : implementations()) {
      CAPTURE(implementation.name);
      CAPTURE(size);
      CHECK(implementation.rows({.first = message.data(), .run = size}) == expected);
    }
  }
}

TEST_CASE("every implementation computes rows as if the zeros between them were written out") {
  CHECK(rc::check("rows = crc of the message written out", [] {
    Rows rows;
    rows.run = *rc::gen::inRange<i64>(1, 200);
    rows.count = *rc::gen::inRange<i64>(1, 8);
    rows.src_stride = *rc::gen::inRange<i64>(0, 300);
    const i64 dst_stride = rows.run + *rc::gen::inRange<i64>(0, 300);
    const Bytes memory = random_bytes((rows.count - 1) * rows.src_stride + rows.run);
    rows.first = memory.data();
    rows.skip = Crc64::power(dst_stride - rows.run);
    const std::uint64_t expected = reference_crc(written_out(memory, rows, dst_stride));
    for (const Implementation& implementation : implementations()) {
      RC_ASSERT(implementation.rows(rows) == expected);
    }
  }));
}

TEST_CASE("every implementation multiplies by the definition") {
  CHECK(rc::check("multiply(a, b) = a * b mod P", [](std::uint64_t a, std::uint64_t b) {
    for (const Implementation& implementation : implementations()) {
      RC_ASSERT(implementation.multiply(a, b) == reference_product(a, b));
      RC_ASSERT(implementation.multiply(~a, ~b) == reference_product(~a, ~b));
    }
  }));
}

TEST_CASE("no implementation touches a byte outside the message") {
  const GuardedPage page;
  for (const Implementation& implementation : implementations()) {
    CAPTURE(implementation.name);
    for (i64 size = 1; size <= 200; ++size) {
      const std::uint64_t front = implementation.rows({.first = page.begin(), .run = size});
      CHECK(front == implementation.rows({.first = page.end() - size, .run = size}));
    }
  }
}

TEST_CASE("the crc of a concatenation is the shifted first crc plus the second") {
  CHECK(rc::check("crc(a ++ b) = shift(crc(a), |b|) ^ crc(b)", [] {
    const Bytes a = random_bytes(*rc::gen::inRange(0, 500));
    const Bytes b = random_bytes(*rc::gen::inRange(0, 500));
    const std::uint64_t whole = reference_crc(concatenate(a, b));
    RC_ASSERT(Crc64::of(concatenate(a, b)) == whole);
    RC_ASSERT(Crc64::extend(Crc64::of(a), b) == whole);
    RC_ASSERT((Crc64::shift(Crc64::of(a), static_cast<i64>(b.size())) ^ Crc64::of(b)) == whole);
  }));
}

TEST_CASE("the crc is linear: crc(x ^ y) = crc(x) ^ crc(y)") {
  CHECK(rc::check("linearity", [] {
    const i64 size = *rc::gen::inRange(0, 500);
    const Bytes x = random_bytes(size);
    const Bytes y = random_bytes(size);
    Bytes sum(x.size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = x[i] ^ y[i];
    RC_ASSERT(Crc64::of(sum) == (Crc64::of(x) ^ Crc64::of(y)));
  }));
}

TEST_CASE("a shift appends zero bytes, however many") {
  CHECK(rc::check("shift by the definition, and shifts add up", [](std::uint64_t crc) {
    const i64 few = *rc::gen::inRange<i64>(0, 1000);
    const Bytes zeros(static_cast<size_t>(few));
    RC_ASSERT(Crc64::shift(crc, few) == Crc64::extend(crc, zeros));
    RC_ASSERT(Crc64::power(few) == Crc64::shift(1, few));
    const i64 a = *rc::gen::inRange<i64>(0, i64{1} << 61);
    const i64 b = *rc::gen::inRange<i64>(0, i64{1} << 61);
    RC_ASSERT(Crc64::shift(Crc64::shift(crc, a), b) == Crc64::shift(crc, a + b));
  }));
  std::uint64_t by_bytes = 1;
  for (i64 bytes = 0; bytes < 2000; ++bytes) {
    CHECK(Crc64::power(bytes) == by_bytes);
    by_bytes = reference_product(by_bytes, 1U << 8);
  }
}

TEST_CASE("the empty message has crc 0 and changes no other") {
  CHECK(Crc64::of({}) == 0);
  CHECK(Crc64::extend(0x1234, {}) == 0x1234);
  CHECK(Crc64::shift(0x1234, 0) == 0x1234);
}

std::uint32_t crc32(std::string_view text) {
  Crc32 crc;
  crc.update(bytes_of(text));
  return crc.value();
}

/// One bit a step, by the definition.
std::uint32_t crc32_by_bits(std::span<const std::byte> bytes) {
  std::uint32_t rest = 0xffffffff;
  for (const std::byte byte : bytes) {
    rest ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? rest >> 1 ^ 0xedb88320 : rest >> 1;
  }
  return ~rest;
}

TEST_CASE("the CRC-32 of the digits 1 to 9 is the check value of CRC-32/ISO-HDLC") {
  CHECK(crc32("123456789") == 0xcbf43926);
  CHECK(crc32("") == 0);
}

TEST_CASE("a stream in pieces has the CRC-32 of the whole message, taken bit by bit") {
  CHECK(rc::check("update in pieces = bit by bit", [] {
    const auto size = *rc::gen::inRange<size_t>(0, 300);
    const auto message = *rc::gen::container<std::vector<std::byte>>(
        size, rc::gen::map(rc::gen::inRange(0, 256), [](int i) { return std::byte(i); }));
    Crc32 crc;
    std::span<const std::byte> rest(message);
    while (!rest.empty()) {
      const auto piece = *rc::gen::inRange<size_t>(1, rest.size() + 1);
      crc.update(rest.first(piece));
      rest = rest.subspan(piece);
    }
    RC_ASSERT(crc.value() == crc32_by_bits(message));
  }));
}

}  // namespace
}  // namespace shardtool::kernels
