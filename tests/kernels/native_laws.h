#pragma once

#include <rapidcheck.h>

#include <vector>

#include "kernels/device/workbench.h"
#include "kernels/native/native_products.h"
#include "tests/kernels/random_numbers.h"

/// Laws of an accelerator's GEMM library.
namespace shardtool::kernels {

/// A product of small integers, whose sums are exact in any order; operands are at any alignment.
struct NativeCase {
  Dtype dtype = *rc::gen::element(Dtype::kBF16, Dtype::kF16, Dtype::kF32);
  bool is_in_out = *rc::gen::arbitrary<bool>();
  i64 rows = *rc::gen::inRange<i64>(0, 9);
  i64 columns = *rc::gen::inRange<i64>(0, 40);
  i64 tokens = *rc::gen::inRange<i64>(1, 10);
  i64 before = *rc::gen::inRange<i64>(0, 5);  ///< elements before each operand
  i64 stride = columns + *rc::gen::inRange<i64>(0, 5);
  i64 x_stride = inputs() + *rc::gen::inRange<i64>(0, 5);
  i64 y_stride = outputs() + *rc::gen::inRange<i64>(0, 5);
  std::uint64_t seed = *rc::gen::arbitrary<std::uint64_t>();

  i64 inputs() const { return is_in_out ? rows : columns; }
  i64 outputs() const { return is_in_out ? columns : rows; }
  i64 width() const { return bits(dtype) / 8; }

  std::vector<float> numbers(i64 n, std::uint64_t salt) const {
    std::vector<float> all(static_cast<size_t>(n));
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = static_cast<float>(static_cast<int>(hashed(seed + salt, i) % 17) - 8);
    }
    return all;
  }
  std::vector<std::byte> stored(const std::vector<float>& values) const {
    std::vector<std::byte> bytes(values.size() * static_cast<size_t>(width()));
    from_floats(dtype, values.data(), std::ssize(values), bytes.data());
    return bytes;
  }
};

/// Compares y of the CPU's kernels with y of the accelerator's library.
inline void native_law(Accelerator& accelerator) {
  const NativeCase c;
  const std::vector<std::byte> w = c.stored(c.numbers(c.before + c.rows * c.stride, 1));
  const std::vector<float> x_numbers = c.numbers(c.before + c.tokens * c.x_stride, 2);
  const std::vector<std::byte> x = c.stored(x_numbers);
  std::vector<float> y = c.numbers(c.before + c.tokens * c.y_stride, 3);
  std::vector<float> expected = y;
  const auto skipped = static_cast<size_t>(c.before * c.width());
  const StoredMatrix matrix{c.dtype, w.data() + skipped, c.rows, c.columns, c.stride};
  const RowView<const float> rows{x_numbers.data() + c.before, c.tokens, c.x_stride};
  const RowView<float> out{expected.data() + c.before, c.tokens, c.y_stride};
  const bool is_empty = c.rows == 0 || c.columns == 0;
  if (!is_empty) c.is_in_out ? add_columns(matrix, rows, out) : multiply_rows(matrix, rows, out);

  Workbench bench(&accelerator);
  const std::byte* const w_there = bench.in(w);
  const std::byte* const x_there = bench.in(x);
  float* const y_there = bench.in_out(y);
  accelerator.run(NativeProducts{
      {c.dtype, w_there == nullptr ? nullptr : w_there + skipped, c.rows, c.columns, c.stride},
      {c.dtype, x_there == nullptr ? nullptr : x_there + skipped, c.tokens, c.inputs(), c.x_stride},
      {y_there == nullptr ? nullptr : y_there + c.before, c.tokens, c.y_stride},
      c.is_in_out});
  bench.finish();
  RC_ASSERT(same_numbers(y, expected));
}

}  // namespace shardtool::kernels
