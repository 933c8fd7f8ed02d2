#pragma once

#include <rapidcheck.h>

#include <algorithm>

#include "kernels/product/product.h"
#include "kernels/product/sums.h"
#include "tests/kernels/byte_laws.h"
#include "tests/kernels/machine.h"
#include "tests/kernels/random_numbers.h"

/// Laws of products: the CPU's bits on every machine.
namespace shardtool::kernels {

/// A matrix of random finite numbers, or its first columns, and the sizes of x.
struct MatrixCase {
  Dtype dtype = *rc::gen::elementOf(computable_dtypes());
  i64 rows = *rc::gen::inRange<i64>(0, 9);
  i64 columns = *rc::gen::weightedOneOf<i64>(
      {{4, rc::gen::inRange<i64>(0, 90)}, {1, rc::gen::inRange<i64>(1000, 2100)}});
  i64 stride = columns + *rc::gen::inRange<i64>(0, 3);
  i64 tokens = *rc::gen::inRange<i64>(1, 7);
  std::uint64_t seed = *rc::gen::arbitrary<std::uint64_t>();

  StoredMatrix of(const std::byte* bytes) const { return {dtype, bytes, rows, columns, stride}; }
  /// With is_tame, zeroes values whose products would overflow to infinities and NaN.
  std::vector<std::byte> bytes(bool is_tame) const {
    const auto width = static_cast<size_t>(bits(dtype) / 8);
    auto all = random_bytes(static_cast<size_t>(rows * stride) * width, seed);
    if (!is_tame) return all;
    for (i64 i = 0; i < rows * stride; ++i) {
      double value = 0;
      std::byte* at = all.data() + static_cast<size_t>(i) * width;
      to_doubles(dtype, at, 1, &value);
      const bool is_small = std::abs(value) < 1e6 && (value == 0 || std::abs(value) > 1e-6);
      if (!is_small) std::fill_n(at, width, std::byte{0});
    }
    return all;
  }
};

template <class Machine>
void residue_rows_law() {
  Machine machine;
  const MatrixCase c;
  const auto map = *rc::gen::element(NumberMap::kBits, NumberMap::kValue);
  const auto w = c.bytes(false);
  const auto x = random_numbers<Field>(static_cast<size_t>(c.tokens * c.columns), c.seed);
  const i64 stride = c.rows + 2;
  const auto n = static_cast<size_t>(c.tokens * stride);
  Field* y = machine.template poisoned<Field>(n);
  std::vector<Field> expected = machine.get(y, n);
  multiply_rows(c.of(w.data()), map, {x.data(), c.tokens, c.columns},
                {expected.data(), c.tokens, stride});
  machine.multiply_rows(c.of(machine.put(w)), map,
                        RowView<const Field>{machine.put(x), c.tokens, c.columns},
                        RowView<Field>{y, c.tokens, stride});
  RC_ASSERT(machine.get(y, n) == expected);
}

template <class Machine>
void residue_columns_law() {
  Machine machine;
  const MatrixCase c;
  const auto map = *rc::gen::element(NumberMap::kBits, NumberMap::kValue);
  const auto w = c.bytes(false);
  const auto x = random_numbers<Field>(static_cast<size_t>(c.tokens * c.rows), c.seed);
  auto expected = random_numbers<Field>(static_cast<size_t>(c.tokens * c.columns), ~c.seed);
  Field* y = machine.put(expected);
  add_columns(c.of(w.data()), map, {x.data(), c.tokens, c.rows},
              {expected.data(), c.tokens, c.columns});
  machine.add_columns(c.of(machine.put(w)), map,
                      RowView<const Field>{machine.put(x), c.tokens, c.rows},
                      RowView<Field>{y, c.tokens, c.columns});
  RC_ASSERT(machine.get(y, expected.size()) == expected);
}

template <class Machine, class T>
void real_rows_law() {
  Machine machine;
  const MatrixCase c;
  const auto w = c.bytes(true);
  const auto x = random_numbers<T>(static_cast<size_t>(c.tokens * c.columns), c.seed);
  std::vector<T> expected(static_cast<size_t>(c.tokens * c.rows));
  multiply_rows(c.of(w.data()), RowView<const T>{x.data(), c.tokens, c.columns},
                RowView<T>{expected.data(), c.tokens, c.rows});
  T* y = machine.template poisoned<T>(expected.size());
  machine.multiply_rows(c.of(machine.put(w)), RowView<const T>{machine.put(x), c.tokens, c.columns},
                        RowView<T>{y, c.tokens, c.rows});
  RC_ASSERT(same_numbers(machine.get(y, expected.size()), expected));
}

template <class Machine, class T>
void real_columns_law() {
  Machine machine;
  const MatrixCase c;
  const auto w = c.bytes(true);
  const auto x = random_numbers<T>(static_cast<size_t>(c.tokens * c.rows), c.seed);
  auto expected = random_numbers<T>(static_cast<size_t>(c.tokens * c.columns), ~c.seed);
  T* y = machine.put(expected);
  add_columns(c.of(w.data()), RowView<const T>{x.data(), c.tokens, c.rows},
              RowView<T>{expected.data(), c.tokens, c.columns});
  machine.add_columns(c.of(machine.put(w)), RowView<const T>{machine.put(x), c.tokens, c.rows},
                      RowView<T>{y, c.tokens, c.columns});
  RC_ASSERT(same_numbers(machine.get(y, expected.size()), expected));
}

/// A bf16 times p - 1 = -1, with so many terms that sums overflow unless they are folded in time.
/// A row has as many threads as kLongRowThreads, a column as kLongColumnThreads.
struct LongCase {
  NumberMap map;
  std::uint16_t weight;
  i64 negated;  ///< minus the weight's residue
  i64 terms;

  std::vector<std::uint16_t> weights(i64 n) const {
    return std::vector<std::uint16_t>(static_cast<size_t>(n), weight);
  }
};
inline constexpr i64 kLongRowThreads = 8;
inline constexpr i64 kLongColumnThreads = 16;
inline constexpr LongCase kLongCases[] = {
    {NumberMap::kBits, 0xffff, -0xffff, 2 * NarrowSum::kMost + 200},
    {NumberMap::kValue, 0xbf80, 1, 200},
};

template <class Machine>
bool long_rows_agree(const LongCase& c) {
  Machine machine;
  const i64 n = kLongRowThreads * c.terms;
  const auto* w = reinterpret_cast<const std::byte*>(machine.put(c.weights(n)));
  const std::vector<Field> x(static_cast<size_t>(n), Field{kFieldPrime - 1});
  Field* y = machine.template poisoned<Field>(1);
  machine.multiply_rows({Dtype::kBF16, w, 1, n}, c.map, RowView<const Field>{machine.put(x), 1, n},
                        RowView<Field>{y, 1, 1});
  return machine.get(y, 1).front() == Field::from_signed(c.negated * n);
}

template <class Machine>
bool long_columns_agree(const LongCase& c) {
  Machine machine;
  const i64 n = kLongColumnThreads * c.terms;
  const auto* w = reinterpret_cast<const std::byte*>(machine.put(c.weights(n)));
  const std::vector<Field> x(static_cast<size_t>(n), Field{kFieldPrime - 1});
  Field* y = machine.put(std::vector<Field>(1));
  machine.add_columns({Dtype::kBF16, w, n, 1}, c.map, RowView<const Field>{machine.put(x), 1, n},
                      RowView<Field>{y, 1, 1});
  return machine.get(y, 1).front() == Field::from_signed(c.negated * n);
}

}  // namespace shardtool::kernels
