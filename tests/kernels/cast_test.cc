#include "kernels/cast/cast.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cast/implementation.h"
#include "kernels/decode/decode.h"
#include "lib/base/dtype.h"

namespace shardtool::kernels {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::array kTargets = {Dtype::kBF16, Dtype::kF16, Dtype::kF32};

std::vector<Dtype> castable_types() {
  std::vector<Dtype> types;
  for (const DtypeInfo& row : dtype_table()) {
    if (is_castable(row.dtype)) types.push_back(row.dtype);
  }
  return types;
}

void put(Bytes& bytes, std::uint64_t element, i64 width) {
  for (i64 i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(element >> (8 * i)));
}

std::uint64_t element_at(const Bytes& bytes, i64 i, i64 width) {
  std::uint64_t element = 0;
  std::memcpy(&element, bytes.data() + i * width, static_cast<size_t>(width));
  return element;
}

/// Field widths of a target.
struct Target {
  int digits;    ///< fraction bits
  int least;     ///< exponent of the smallest normal number
  double limit;  ///< halfway from the largest number to the next power of two
};
Target target_of(Dtype to) {
  if (to == Dtype::kBF16) return {7, -126, std::ldexp(511, 119)};
  if (to == Dtype::kF16) return {10, -14, 65520};
  return {23, -126, std::ldexp(33554431, 103)};
}

/// The nearest number of the target, ties to even, computed with doubles: exact for every double
/// that has a value in the target's range, because the quotient by the step is one.
double nearest(double x, const Target& target) {
  if (x == 0 || !std::isfinite(x)) return x;
  if (std::fabs(x) >= target.limit) return std::copysign(INFINITY, x);
  const int exponent = std::max(std::ilogb(x), target.least);
  return std::ldexp(std::nearbyint(std::ldexp(x, target.digits - exponent)),
                    exponent - target.digits);
}

/// Result by all implementations on this CPU; the test fails if they differ.
struct Result {
  Bytes bytes;
  CastCounts counts;
};
Result cast_by_all(Dtype from, Dtype to, const Bytes& elements) {
  const i64 n = std::ssize(elements) / (bits(from) / 8);
  Result first{Bytes(static_cast<size_t>(n * bits(to) / 8)), {}};
  first.counts = cast(from, to, elements.data(), n, first.bytes.data());
  for (const CastImplementation& implementation : cast_implementations()) {
    CAPTURE(implementation.name);
    Bytes other(first.bytes.size());
    const CastCounts counts = cast_with(implementation, from, to, elements.data(), n, other.data());
    REQUIRE(counts == first.counts);
    REQUIRE(other == first.bytes);
  }
  return first;
}

/// Checks every result and the counts against `nearest`.
void check_against_reference(Dtype from, Dtype to, const Bytes& elements) {
  CAPTURE(to_string(from));
  CAPTURE(to_string(to));
  const Result result = cast_by_all(from, to, elements);
  const i64 n = std::ssize(elements) / (bits(from) / 8);
  std::vector<double> values(static_cast<size_t>(n));
  std::vector<double> results(values.size());
  to_doubles(from, elements.data(), n, values.data());
  to_doubles(to, result.bytes.data(), n, results.data());
  const Target target = target_of(to);
  CastCounts expected;
  i64 wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    const double y = nearest(x, target);
    ++expected.values;
    expected.nan += std::isnan(x) ? 1 : 0;
    expected.overflowed += std::isfinite(x) && std::isinf(y) ? 1 : 0;
    expected.underflowed += x != 0 && y == 0 ? 1 : 0;
    expected.rounded += std::isfinite(y) && y != 0 && x != y ? 1 : 0;
    const bool is_same = std::isnan(x) ? std::isnan(results[i])
                                       : std::bit_cast<i64>(y) == std::bit_cast<i64>(results[i]);
    wrong += is_same ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(result.counts == expected);
}

/// Elements of every class of a wide format: each sign and exponent with fractions at and next to
/// the points halfway between numbers of the targets, and random ones.
Bytes classes_of(int exponent_bits, int fraction_bits, i64 width) {
  std::mt19937_64 random(1);
  std::set<std::uint64_t> fractions;
  const std::uint64_t last = (std::uint64_t{1} << fraction_bits) - 1;
  for (int bit = 0; bit < fraction_bits; ++bit) {
    const std::uint64_t half = std::uint64_t{1} << bit;
    for (const std::uint64_t odd : {0, 1, 2, 3}) {
      const std::uint64_t point = odd * half;
      for (const std::uint64_t near : {point - 1, point, point + 1}) fractions.insert(near & last);
      fractions.insert((last - point) & last);
    }
    fractions.insert(random() & last);
  }
  Bytes elements;
  for (std::uint64_t top = 0; top < std::uint64_t{1} << (exponent_bits + 1); ++top) {
    for (const std::uint64_t fraction : fractions) {
      put(elements, top << fraction_bits | fraction, width);
    }
  }
  return elements;
}

Bytes all_patterns(i64 width) {
  Bytes elements;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << (8 * width); ++i) put(elements, i, width);
  return elements;
}

/// Hash of results as casts.py defines it.
class CastHash {
 public:
  void add(Dtype to, const Bytes& results) {
    const i64 width = bits(to) / 8;
    const i64 n = std::ssize(results) / width;
    for (i64 i = 0; i < n; ++i, ++k_) {
      std::uint64_t element = element_at(results, i, width);
      if (is_nan(to, element)) element = width == 2 ? 0xffff : 0xffffffff;
      hash_ += element * ((2 * k_ + 1) * 0x9E3779B97F4A7C15);
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
  static bool is_nan(Dtype to, std::uint64_t element) {
    if (to == Dtype::kF32) return (element & 0x7fffffff) > 0x7f800000;
    return (element & 0x7fff) > (to == Dtype::kF16 ? 0x7c00 : 0x7f80);
  }

  std::uint64_t k_ = 0;
  std::uint64_t hash_ = 0;
};

/// torch's hashes by "FROM TO EXPONENT".
std::map<std::string, std::uint64_t> torch_hashes() {
  std::ifstream file(SHARDTOOL_SOURCE_DIR "/tests/kernels/casts.txt");
  std::map<std::string, std::uint64_t> hashes;
  for (std::string from, to, exponent, hash; file >> from >> to >> exponent >> hash;) {
    hashes[from + " " + to + " " + exponent] = std::stoull(hash, nullptr, 16);
  }
  return hashes;
}

std::uint64_t hash_of_small(Dtype from, Dtype to) {
  Bytes results(all_patterns(bits(from) / 8).size() / static_cast<size_t>(bits(from) / 8) *
                static_cast<size_t>(bits(to) / 8));
  const Bytes elements = all_patterns(bits(from) / 8);
  cast(from, to, elements.data(), std::ssize(elements) * 8 / bits(from), results.data());
  CastHash hash;
  hash.add(to, results);
  return hash.value();
}

/// Hash over all F32 with these exponent bits.
std::uint64_t hash_of_exponent(Dtype to, std::uint32_t exponent) {
  constexpr std::uint32_t kFractions = 1U << 23;
  constexpr std::uint32_t kPart = 1U << 18;
  CastHash hash;
  std::vector<std::uint32_t> part(kPart);
  Bytes results(kPart * 2);
  for (std::uint32_t at = 0; at < 2 * kFractions; at += kPart) {
    const std::uint32_t sign = at < kFractions ? 0 : 0x80000000;
    for (std::uint32_t i = 0; i < kPart; ++i) {
      part[i] = sign | exponent << 23 | (at + i) % kFractions;
    }
    cast(Dtype::kF32, to, reinterpret_cast<const std::byte*>(part.data()), kPart, results.data());
    hash.add(to, results);
  }
  return hash.value();
}

}  // namespace

TEST_CASE("every number of a format of 8 or 16 bits becomes the nearest of the target") {
  for (const Dtype from : castable_types()) {
    if (bits(from) > 16) continue;
    const Bytes elements = all_patterns(bits(from) / 8);
    for (const Dtype to : kTargets) check_against_reference(from, to, elements);
  }
}

TEST_CASE("every class of F32 and F64 becomes the nearest number of the target") {
  const Bytes singles = classes_of(8, 23, 4);
  const Bytes doubles = classes_of(11, 52, 8);
  for (const Dtype to : kTargets) {
    check_against_reference(Dtype::kF32, to, singles);
    check_against_reference(Dtype::kF64, to, doubles);
  }
}

TEST_CASE("NaN keeps its sign and the upper bits of its payload, and becomes quiet") {
  Bytes elements;
  for (const std::uint64_t nan : {0x7f800001U, 0xff800001U, 0x7fa12345U, 0xffffffffU}) {
    put(elements, nan, 4);
  }
  const auto results = [&](Dtype to) {
    const Result result = cast_by_all(Dtype::kF32, to, elements);
    std::vector<std::uint64_t> all;
    for (i64 i = 0; i < 4; ++i) all.push_back(element_at(result.bytes, i, 2));
    CHECK(result.counts == CastCounts{.values = 4, .nan = 4});
    return all;
  };
  CHECK(results(Dtype::kBF16) == std::vector<std::uint64_t>{0x7fc0, 0xffc0, 0x7fe1, 0xffff});
  CHECK(results(Dtype::kF16) == std::vector<std::uint64_t>{0x7e00, 0xfe00, 0x7f09, 0xffff});
}

TEST_CASE("F64 is rounded once") {
  Bytes elements;
  // Just above halfway between 1 and the next number; F32 has no bit for the difference.
  put(elements, std::bit_cast<std::uint64_t>(1 + 0x1p-8 + 0x1p-40), 8);
  put(elements, std::bit_cast<std::uint64_t>(1 + 0x1p-8 - 0x1p-40), 8);
  // Zeros among normal numbers.
  put(elements, std::bit_cast<std::uint64_t>(0.0), 8);
  put(elements, std::bit_cast<std::uint64_t>(-0.0), 8);
  const Result result = cast_by_all(Dtype::kF64, Dtype::kBF16, elements);
  CHECK(element_at(result.bytes, 0, 2) == 0x3f81);
  CHECK(element_at(result.bytes, 1, 2) == 0x3f80);
  CHECK(element_at(result.bytes, 2, 2) == 0);
  CHECK(element_at(result.bytes, 3, 2) == 0x8000);
}

TEST_CASE("a cast in place gives the same: at the front if narrower, at the back if wider") {
  for (const Dtype from : castable_types()) {
    for (const Dtype to : kTargets) {
      for (const i64 n : {i64{0}, i64{1}, kCastBlock - 1, kCastBlock, 3 * kCastBlock + 7}) {
        const i64 width = bits(from) / 8;
        const i64 room = std::max(n * width, n * bits(to) / 8);
        Bytes elements;
        std::mt19937_64 random(7);
        for (i64 i = 0; i < n; ++i) put(elements, random(), width);
        Bytes apart(static_cast<size_t>(n * bits(to) / 8));
        const CastCounts counts = cast(from, to, elements.data(), n, apart.data());
        Bytes memory(static_cast<size_t>(room));
        std::byte* const at = memory.data() + (bits(to) > bits(from) ? room - n * width : 0);
        if (n > 0) std::memcpy(at, elements.data(), elements.size());
        CHECK(cast(from, to, at, n, memory.data()) == counts);
        memory.resize(apart.size());
        CHECK(memory == apart);
      }
    }
  }
}

TEST_CASE("all small formats are cast as torch casts them, bit for bit except for NaN") {
  const auto hashes = torch_hashes();
  i64 compared = 0;
  for (const auto& [key, hash] : hashes) {
    std::istringstream words(key);
    std::string from, to, exponent;
    words >> from >> to >> exponent;
    if (exponent != "-") continue;
    CAPTURE(key);
    CHECK(hash_of_small(*parse_dtype(from), *parse_dtype(to)) == hash);
    ++compared;
  }
  CHECK(compared == 16);
}

TEST_CASE("all F32 at the edges of the targets are cast as torch casts them") {
  const auto hashes = torch_hashes();
  CHECK(hashes.size() == 16 + 2 * 256);
  // F32's subnormals; F16's least subnormals, largest subnormals and overflow; F32's largest; NaN.
  for (const std::uint32_t exponent : {0, 102, 112, 142, 254, 255}) {
    CAPTURE(exponent);
    for (const Dtype to : {Dtype::kF16, Dtype::kBF16}) {
      const std::string key = "F32 " + std::string(to_string(to)) + " " + std::to_string(exponent);
      CHECK(hash_of_exponent(to, exponent) == hashes.at(key));
    }
  }
}

TEST_CASE("all F32 are cast as torch casts them" * doctest::skip()) {
  for (const auto& [key, hash] : torch_hashes()) {
    std::istringstream words(key);
    std::string from, to, exponent;
    words >> from >> to >> exponent;
    if (exponent == "-") continue;
    CAPTURE(key);
    CHECK(hash_of_exponent(*parse_dtype(to), static_cast<std::uint32_t>(std::stoi(exponent))) ==
          hash);
  }
}

}  // namespace shardtool::kernels
