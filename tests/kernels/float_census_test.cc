#include "kernels/float_census/float_census.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/float_census/implementation.h"

namespace shardtool::kernels {
namespace {

/// Result of all implementations on this CPU; the test fails if they differ.
FloatCensus census_by_all(Dtype dtype, std::span<const std::byte> buffer) {
  const FloatCensus first = float_census(dtype, buffer);
  for (const CensusImplementation& implementation : census_implementations()) {
    CAPTURE(implementation.name);
    REQUIRE(implementation.census(dtype, buffer) == first);
  }
  return first;
}

/// A float format by its fields, to decode one element at a time.
struct Format {
  Dtype dtype;
  int exponent_bits;
  int mantissa_bits;
  enum { kIeee, kFinite, kScale, kUnsignedZero } kind;
};

constexpr Format kFormats[] = {
    {Dtype::kBF16, 8, 7, Format::kIeee},
    {Dtype::kF16, 5, 10, Format::kIeee},
    {Dtype::kF32, 8, 23, Format::kIeee},
    {Dtype::kF64, 11, 52, Format::kIeee},
    {Dtype::kF8E5M2, 5, 2, Format::kIeee},
    {Dtype::kF8E4M3, 4, 3, Format::kFinite},
    {Dtype::kF8E8M0, 8, 0, Format::kScale},
    {Dtype::kF8E4M3Fnuz, 4, 3, Format::kUnsignedZero},
    {Dtype::kF8E5M2Fnuz, 5, 2, Format::kUnsignedZero},
};

/// Decodes one element by its fields.
FloatCensus decode(const Format& format, std::uint64_t bits) {
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  const std::uint64_t top = (std::uint64_t{1} << format.exponent_bits) - 1;
  const std::uint64_t exponent = (bits >> format.mantissa_bits) & top;
  const bool negative = (bits >> (format.mantissa_bits + format.exponent_bits)) & 1;
  const bool zero_fields = exponent == 0 && mantissa == 0;
  FloatCensus census;
  switch (format.kind) {
    case Format::kIeee:
      census.nan = exponent == top && mantissa != 0;
      census.infinite = exponent == top && mantissa == 0;
      census.all_zero = zero_fields;
      break;
    case Format::kFinite:
      census.nan = exponent == top && mantissa == 7;
      census.all_zero = zero_fields;
      break;
    case Format::kScale:
      census.nan = exponent == top;
      census.all_zero = zero_fields;  // all bits zero: never written
      break;
    case Format::kUnsignedZero:
      census.nan = zero_fields && negative;
      census.all_zero = zero_fields && !negative;
      break;
  }
  return census;
}

void append(std::vector<std::byte>& buffer, std::uint64_t element, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) buffer.push_back(static_cast<std::byte>(element >> (8 * i)));
}

size_t element_bytes(Dtype dtype) {
  return static_cast<size_t>(bits(dtype)) / 8;
}

TEST_CASE("every element of 8 and 16 bits is what its fields say") {
  for (const Format& format : kFormats) {
    const size_t bytes = element_bytes(format.dtype);
    if (bytes > 2) continue;
    CAPTURE(to_string(format.dtype));
    FloatCensus expected;
    std::vector<std::byte> all;
    for (std::uint64_t element = 0; element < (std::uint64_t{1} << (8 * bytes)); ++element) {
      std::vector<std::byte> one;
      append(one, element, bytes);
      CAPTURE(element);
      REQUIRE(census_by_all(format.dtype, one) == decode(format, element));
      expected += decode(format, element);
      append(all, element, bytes);
    }
    CHECK(census_by_all(format.dtype, all) == expected);
  }
}

TEST_CASE("elements of 32 and 64 bits are what the processor takes them for") {
  std::mt19937_64 random(7);
  FloatCensus expected32;
  FloatCensus expected64;
  std::vector<std::byte> buffer32;
  std::vector<std::byte> buffer64;
  for (int i = 0; i < 50'000; ++i) {
    // A third has all exponent bits set, half of these with a zero mantissa.
    const std::uint64_t bits = random();
    const std::uint64_t odd32 = i % 3 == 0 ? 0x7f800000u : 0;
    const std::uint64_t odd64 = i % 3 == 0 ? 0x7ff0000000000000u : 0;
    const std::uint64_t keep = i % 6 == 0 ? 0x8000000000000000u : ~std::uint64_t{0};
    const auto word = static_cast<std::uint32_t>((bits & keep) >> 32 | odd32);
    const std::uint64_t longer = (bits & keep) | odd64;
    const auto single = std::bit_cast<float>(word);
    const auto twice = std::bit_cast<double>(longer);
    expected32 += {std::isnan(single), std::isinf(single), single == 0};
    expected64 += {std::isnan(twice), std::isinf(twice), twice == 0};
    append(buffer32, word, 4);
    append(buffer64, longer, 8);
  }
  CHECK(expected32.nan > 1000);
  CHECK(expected32.infinite > 1000);
  CHECK(census_by_all(Dtype::kF32, buffer32) == expected32);
  CHECK(census_by_all(Dtype::kC64, buffer32) == expected32);
  CHECK(census_by_all(Dtype::kF64, buffer64) == expected64);
}

TEST_CASE("one odd element is found at every place of a long buffer in every alignment") {
  for (const Format& format : kFormats) {
    CAPTURE(to_string(format.dtype));
    const size_t bytes = element_bytes(format.dtype);
    const size_t count = 40'000 / bytes;
    std::vector<std::byte> buffer(count * bytes + 8);
    std::uint64_t nan = ~std::uint64_t{0};
    if (format.kind == Format::kUnsignedZero) nan = 0x80;
    for (const size_t shift : {size_t{0}, size_t{1}, size_t{3}}) {
      for (size_t at = 0; at < count; at += 1 + at / 7) {
        std::span<std::byte> elements = std::span(buffer).subspan(shift, count * bytes);
        std::memcpy(&elements[at * bytes], &nan, bytes);
        REQUIRE(census_by_all(format.dtype, elements) == FloatCensus{1, 0, false});
        std::memset(&elements[at * bytes], 0, bytes);
      }
    }
    REQUIRE(census_by_all(format.dtype, std::span(buffer).first(count * bytes)) == FloatCensus{});
  }
}

TEST_CASE("both zeros are zero, and what is no float is only asked for its bits") {
  std::vector<std::byte> negative_zeros;
  for (int i = 0; i < 100; ++i) append(negative_zeros, 0x8000, 2);
  CHECK(census_by_all(Dtype::kBF16, negative_zeros) == FloatCensus{});
  CHECK(census_by_all(Dtype::kI16, negative_zeros) == FloatCensus{0, 0, false});
  CHECK(census_by_all(Dtype::kF4, std::vector<std::byte>(9)) == FloatCensus{});
  CHECK(census_by_all(Dtype::kBF16, {}) == FloatCensus{});
}

}  // namespace
}  // namespace shardtool::kernels
