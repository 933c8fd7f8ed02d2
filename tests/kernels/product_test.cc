#include "kernels/product/product.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/product/implementation.h"

namespace shardtool::kernels {
namespace {

constexpr Dtype kDtypes[] = {Dtype::kBF16,   Dtype::kF16, Dtype::kF32, Dtype::kF64,
                             Dtype::kF8E4M3, Dtype::kI8,  Dtype::kU8,  Dtype::kI32};

/// A matrix of random bits, or some of its columns, and rows of x.
struct Case {
  Dtype dtype = *rc::gen::elementOf(std::vector<Dtype>(std::begin(kDtypes), std::end(kDtypes)));
  i64 rows = *rc::gen::inRange<i64>(0, 9);
  i64 columns = *rc::gen::weightedOneOf<i64>(
      {{4, rc::gen::inRange<i64>(0, 40)}, {1, rc::gen::inRange<i64>(1000, 2100)}});
  i64 before = *rc::gen::inRange<i64>(0, 5);  ///< columns of the stored rows before ours
  i64 stride = before + columns + *rc::gen::inRange<i64>(0, 5);
  i64 tokens = *rc::gen::inRange<i64>(1, 10);
  std::uint64_t seed = *rc::gen::arbitrary<std::uint64_t>();
  std::vector<std::byte> bytes;

  Case() {
    const i64 width = bits(dtype) / 8;
    bytes.resize(static_cast<size_t>(rows * stride * width));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(hashed(seed, i));
  }
  StoredMatrix matrix() const {
    return {dtype, bytes.data() + before * bits(dtype) / 8, rows, columns, stride};
  }
  std::vector<Field> residues(NumberMap map) const {
    std::vector<Field> all(static_cast<size_t>(rows * columns));
    for (i64 r = 0; r < rows; ++r) {
      to_residues(dtype, map, matrix().at(r, 0), columns, all.data() + r * columns);
    }
    return all;
  }
  std::vector<Field> random(i64 count) const {
    std::vector<Field> x(static_cast<size_t>(count));
    for (size_t i = 0; i < x.size(); ++i) x[i] = field_random(~seed, i);
    return x;
  }
};

TEST_CASE("rows of residues: every CPU's loops give the sums of products") {
  CHECK(rc::check("rows", [] {
    const Case c;
    const auto map = *rc::gen::element(NumberMap::kBits, NumberMap::kValue);
    const auto w = c.residues(map);
    const auto x = c.random(c.tokens * c.columns);
    for (const ProductImplementation& way : product_implementations()) {
      std::vector<Field> y(static_cast<size_t>(c.tokens * (c.rows + 3)), Field{77});
      way.rows_of_residues(c.matrix(), map, {x.data(), c.tokens, c.columns},
                           {y.data(), c.tokens, c.rows + 3});
      for (i64 t = 0; t < c.tokens; ++t) {
        for (i64 r = 0; r < c.rows; ++r) {
          Field sum;
          for (i64 k = 0; k < c.columns; ++k) sum += w[r * c.columns + k] * x[t * c.columns + k];
          RC_ASSERT(y[t * (c.rows + 3) + r] == sum);
        }
        RC_ASSERT(y[t * (c.rows + 3) + c.rows] == Field{77});
      }
    }
  }));
}

TEST_CASE("columns of residues: what is there is added to") {
  CHECK(rc::check("columns", [] {
    const Case c;
    const auto map = *rc::gen::element(NumberMap::kBits, NumberMap::kValue);
    const auto w = c.residues(map);
    const auto x = c.random(c.tokens * c.rows);
    for (const ProductImplementation& way : product_implementations()) {
      std::vector<Field> y(static_cast<size_t>(c.tokens * c.columns), Field{5});
      way.columns_of_residues(c.matrix(), map, {x.data(), c.tokens, c.rows},
                              {y.data(), c.tokens, c.columns});
      for (i64 t = 0; t < c.tokens; ++t) {
        for (i64 k = 0; k < c.columns; ++k) {
          Field sum{5};
          for (i64 r = 0; r < c.rows; ++r) sum += w[r * c.columns + k] * x[t * c.rows + r];
          RC_ASSERT(y[t * c.columns + k] == sum);
        }
      }
    }
  }));
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  });
}

TEST_CASE("floats: every CPU gives the same bits, and a row alone those of the row among others") {
  CHECK(rc::check("reals", [] {
    Case c;
    c.dtype = Dtype::kBF16;
    c.bytes.resize(static_cast<size_t>(c.rows * c.stride * 2));
    for (i64 i = 0; i < c.rows * c.stride; ++i) {
      const auto bits = static_cast<std::uint16_t>(0x3c00 + (hashed(c.seed, i) & 0x83ff));
      std::memcpy(&c.bytes[i * 2], &bits, 2);
    }
    std::vector<double> exact(static_cast<size_t>(c.rows * c.columns));
    for (i64 r = 0; r < c.rows; ++r) {
      to_doubles(c.dtype, c.matrix().at(r, 0), c.columns, exact.data() + r * c.columns);
    }
    std::vector<double> x(static_cast<size_t>(c.tokens * c.columns));
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<double>(hashed(c.seed + 1, i) % 2001) / 1000 - 1;
    }
    std::vector<double> first(static_cast<size_t>(c.tokens * c.rows));
    const auto& ways = product_implementations();
    ways.front().rows_of_doubles(c.matrix(), {x.data(), c.tokens, c.columns},
                                 {first.data(), c.tokens, c.rows});
    for (const ProductImplementation& way : ways) {
      std::vector<double> y(first.size());
      way.rows_of_doubles(c.matrix(), {x.data(), c.tokens, c.columns},
                          {y.data(), c.tokens, c.rows});
      RC_ASSERT(same_bits(y, first));
    }
    for (i64 t = 0; t < c.tokens; ++t) {
      for (i64 r = 0; r < c.rows; ++r) {
        double sum = 0;
        double size = 0;
        for (i64 k = 0; k < c.columns; ++k) {
          const double product = exact[r * c.columns + k] * x[t * c.columns + k];
          sum += product;
          size += std::abs(product);
        }
        RC_ASSERT(std::abs(first[t * c.rows + r] - sum) <= 1e-13 * size + 1e-300);
        double alone = 0;
        multiply_rows({c.dtype, c.matrix().at(r, 0), 1, c.columns},
                      {x.data() + t * c.columns, 1, c.columns}, RowView<double>{&alone, 1, 1});
        RC_ASSERT(alone == first[t * c.rows + r]);
      }
    }
  }));
}

TEST_CASE("values of bf16, f16 and the 8-bit formats are homomorphic residues") {
  for (const Dtype dtype : {Dtype::kBF16, Dtype::kF16, Dtype::kF8E4M3, Dtype::kF8E5M2,
                            Dtype::kF8E4M3Fnuz, Dtype::kF8E5M2Fnuz, Dtype::kF8E8M0}) {
    const i64 n = i64{1} << bits(dtype);
    const i64 width = bits(dtype) / 8;
    std::vector<std::byte> all(static_cast<size_t>(n * width));
    for (i64 i = 0; i < n; ++i) std::memcpy(&all[static_cast<size_t>(i * width)], &i, width);
    std::vector<double> values(static_cast<size_t>(n));
    std::vector<float> floats(static_cast<size_t>(n));
    std::vector<Field> residues(static_cast<size_t>(n));
    to_doubles(dtype, all.data(), n, values.data());
    to_floats(dtype, all.data(), n, floats.data());
    to_residues(dtype, NumberMap::kValue, all.data(), n, residues.data());
    for (i64 i = 0; i < n; ++i) {
      CAPTURE(to_string(dtype));
      CAPTURE(i);
      if (!std::isfinite(values[i])) continue;
      REQUIRE(static_cast<double>(floats[i]) == values[i]);
      // The value is v 2^-200 for an integer v of a power of two times 53 bits.
      int exponent = 0;
      const double mantissa = std::frexp(values[i], &exponent);
      const auto integer = static_cast<std::int64_t>(std::ldexp(mantissa, 53));
      REQUIRE(residues[i] * power_of_two(53 - exponent) == Field::from_signed(integer));
    }
  }
  CHECK(residue_of(1.0) == Field{1});
  CHECK(residue_of(-1.0) == -Field{1});
  CHECK(residue_of(0.5) + residue_of(0.5) == Field{1});
  CHECK(residue_of(3.25) * residue_of(-1.5) == residue_of(-4.875));
}

TEST_CASE("signed integers beyond 2^53 are residues exactly") {
  const std::vector<std::int64_t> stored = {(std::int64_t{1} << 53) + 1,
                                            -(std::int64_t{1} << 60) - 3};
  std::vector<Field> residues(2);
  to_residues(Dtype::kI64, NumberMap::kValue, reinterpret_cast<const std::byte*>(stored.data()), 2,
              residues.data());
  CHECK(residues[0] == Field::from_signed(stored[0]));
  CHECK(residues[1] == Field::from_signed(stored[1]));
}

TEST_CASE("a table of values: where the formats differ") {
  const auto value = [](Dtype dtype, unsigned bits) {
    const auto stored = static_cast<std::uint16_t>(bits);
    double result = 0;
    to_doubles(dtype, reinterpret_cast<const std::byte*>(&stored), 1, &result);
    return result;
  };
  CHECK(value(Dtype::kBF16, 0x3f80) == 1.0);
  CHECK(value(Dtype::kF16, 0x7bff) == 65504.0);
  CHECK(value(Dtype::kF16, 0x0001) == std::ldexp(1.0, -24));
  CHECK(std::isinf(value(Dtype::kF16, 0xfc00)));
  CHECK(value(Dtype::kF8E4M3, 0x7e) == 448.0);
  CHECK(std::isnan(value(Dtype::kF8E4M3, 0x7f)));
  CHECK(value(Dtype::kF8E5M2, 0x7b) == 57344.0);
  CHECK(std::isinf(value(Dtype::kF8E5M2, 0x7c)));
  CHECK(value(Dtype::kF8E4M3Fnuz, 0x7f) == 240.0);
  CHECK(std::isnan(value(Dtype::kF8E4M3Fnuz, 0x80)));
  CHECK(value(Dtype::kF8E5M2Fnuz, 0x7f) == 57344.0);
  CHECK(value(Dtype::kF8E8M0, 127) == 1.0);
  CHECK(std::isnan(value(Dtype::kF8E8M0, 255)));
}

}  // namespace
}  // namespace shardtool::kernels
