#pragma once

#include <rapidcheck.h>

#include <bit>
#include <cmath>

#include "kernels/compare/compare.h"
#include "kernels/decode/decode_works.h"
#include "kernels/encode/element.h"
#include "kernels/encode/encode.h"
#include "kernels/fill/fill.h"
#include "kernels/fold/fold.h"
#include "kernels/strided_copy/strided_copy.h"
#include "tests/kernels/box.h"
#include "tests/kernels/machine.h"
#include "tests/kernels/random_numbers.h"
#include "tests/kernels/threads/lane_sums.h"

/// Laws of works that move, convert, compare and add: the CPU's bits on every machine.
namespace shardtool::kernels {

template <class Machine>
void copy_law_of(const Box& box) {
  Machine machine;
  const index::StridedCopy copy = unpack(box);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto src =
      random_bytes(static_cast<size_t>(array_bytes(box.sizes, box.element_bytes)), seed);
  std::vector<std::byte> expected(static_cast<size_t>(array_bytes(box.extents, box.element_bytes)),
                                  kPoison);
  std::byte* dst = machine.template poisoned<std::byte>(expected.size());
  machine.strided_copy(copy, machine.put(src), dst);
  strided_copy(copy, src.data(), expected.data());
  RC_ASSERT(machine.get(dst, expected.size()) == expected);
}

template <class Machine>
void copy_law() {
  copy_law_of<Machine>(any_box());
}

/// Boxes of four axes, all cut, whose copies have three loops.
template <class Machine>
void deep_copy_law() {
  Box box;
  box.element_bytes = *rc::gen::element<i64>(1, 2, 4, 8, 16, 3);
  for (int axis = 0; axis < 4; ++axis) {
    box.sizes.push_back(*rc::gen::inRange<i64>(1, 7));
    box.begin.push_back(*rc::gen::inRange<i64>(0, 3));
    box.extents.push_back(box.sizes.back() + box.begin.back() + 1);
  }
  copy_law_of<Machine>(box);
}

/// Rows of whole vectors, between addresses that may be odd.
template <class Machine>
void wide_copy_law() {
  Machine machine;
  const i64 rows = *rc::gen::inRange<i64>(1, 40);
  const i64 columns = 4 * *rc::gen::inRange<i64>(1, 40);
  const i64 begin = 4 * *rc::gen::inRange<i64>(0, columns / 4);
  const i64 from = *rc::gen::element<i64>(0, 0, 1, 2, 4, 8, 16);
  const std::array<i64, 2> sizes{rows, columns - begin}, zeros{0, 0}, at{0, begin},
      extents{rows, columns};
  index::StridedCopy copy = *index::lower(sizes, {at, extents}, {zeros, sizes}, 32);
  copy.src += from;
  const auto src = random_bytes(static_cast<size_t>(rows * columns * 4 + from), 7);
  std::vector<std::byte> expected(static_cast<size_t>(byte_count(copy)), kPoison);
  std::byte* dst = machine.template poisoned<std::byte>(expected.size());
  machine.strided_copy(copy, machine.put(src), dst);
  strided_copy(copy, src.data(), expected.data());
  RC_ASSERT(machine.get(dst, expected.size()) == expected);
}

inline const std::vector<Dtype>& computable_dtypes() {
  static const std::vector<Dtype> dtypes = [] {
    std::vector<Dtype> all;
    for (const DtypeInfo& info : dtype_table()) {
      if (is_computable(info.dtype)) all.push_back(info.dtype);
    }
    return all;
  }();
  return dtypes;
}

/// Every pattern of up to 16 bits, and random patterns of wider dtypes.
inline std::vector<std::byte> patterns_of(Dtype dtype) {
  const auto width = static_cast<size_t>(bits(dtype) / 8);
  constexpr size_t kCount = size_t{1} << 16;
  auto bytes = random_bytes(kCount * width, 99);
  for (size_t i = 0; i < kCount; ++i) {
    if (width <= 2) std::memcpy(&bytes[i * width], &i, width);
  }
  return bytes;
}

/// Calls fail(dtype, what) if a machine's decoding differs from decode.h.
template <class Machine, class Fail>
void decode_law(Dtype dtype, const Fail& fail) {
  Machine machine;
  const auto bytes = patterns_of(dtype);
  const i64 width = bits(dtype) / 8;
  const auto n = bytes.size() / static_cast<size_t>(width);
  const auto count = static_cast<i64>(n);
  const std::byte* elements = machine.put(bytes);
  const auto check = [&](auto work, auto* y, auto expected, const char* what) {
    machine.run(work);
    if (!same_numbers(machine.get(y, n), expected)) fail(dtype, what);
  };
  std::vector<double> doubles(n);
  to_doubles(dtype, bytes.data(), count, doubles.data());
  auto* as_doubles = machine.template poisoned<double>(n);
  check(DecodeNumbers<double>{dtype, elements, count, as_doubles}, as_doubles, doubles, "doubles");
  std::vector<float> floats(n);
  to_floats(dtype, bytes.data(), count, floats.data());
  auto* as_floats = machine.template poisoned<float>(n);
  check(DecodeNumbers<float>{dtype, elements, count, as_floats}, as_floats, floats, "floats");
  for (const NumberMap map : {NumberMap::kBits, NumberMap::kValue}) {
    std::vector<Field> residues(n);
    to_residues(dtype, map, bytes.data(), count, residues.data());
    auto* y = machine.template poisoned<Field>(n);
    check(DecodeResidues{dtype, width, map, elements, count, y}, y, residues, "residues");
  }
}

template <class Machine, class T>
void fill_law() {
  Machine machine;
  const auto n = *rc::gen::inRange<size_t>(0, 3000);
  const auto value = static_cast<T>(*rc::gen::arbitrary<std::uint64_t>());
  T* data = machine.template poisoned<T>(n + 1);
  const T after = machine.get(data, n + 1).back();
  machine.run(Fill<T>{data, static_cast<i64>(n), value});
  std::vector<T> expected(n, value);
  expected.push_back(after);
  RC_ASSERT(machine.get(data, n + 1) == expected);
}

/// Folds, also in place.
template <class Machine, class T>
void fold_law() {
  Machine machine;
  const auto n = *rc::gen::inRange<size_t>(0, 3000);
  const int parts = *rc::gen::inRange(1, 9);
  const bool is_own = *rc::gen::arbitrary<bool>();
  FoldParts<T> fold;
  fold.parts = parts;
  fold.n = static_cast<i64>(n);
  std::vector<T> expected;
  T* first = nullptr;
  for (int r = 0; r < parts; ++r) {
    const auto part = random_numbers<T>(n, static_cast<std::uint64_t>(r) + n);
    T* data = machine.put(part);
    if (r == 0) first = data;
    fold.part[static_cast<size_t>(r)] = data;
    for (size_t i = 0; r > 0 && i < n; ++i) expected[i] = expected[i] + part[i];
    if (r == 0) expected = part;
  }
  fold.y = is_own ? first : machine.template poisoned<T>(n);
  machine.run(fold);
  RC_ASSERT(same_numbers(machine.get(fold.y, n), expected));
}

/// Compares with a loop over single pairs.
/// True if floats are encoded as from_floats does.
template <class Machine>
bool encodes_alike(Dtype dtype) {
  Machine machine;
  std::vector<float> values;
  // Every pattern of the upper half, with lower halves around a tie.
  for (std::uint32_t high = 0; high < 0x10000; high += 3) {
    for (const std::uint32_t low : {0U, 0x1000U, 0x7fffU, 0x8000U, 0x8001U, high * 7 % 0x10000}) {
      values.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  const auto n = static_cast<i64>(values.size());
  const auto bytes = values.size() * static_cast<size_t>(bits(dtype) / 8);
  std::vector<std::byte> expected(bytes);
  from_floats(dtype, values.data(), n, expected.data());
  std::byte* elements = machine.template poisoned<std::byte>(bytes);
  machine.run(EncodeFloats{dtype, machine.put(values), n, elements});
  return machine.get(elements, bytes) == expected;
}

/// The root mean square of rows: 1 for zeros.
template <class Machine, class T>
void square_law() {
  Machine machine;
  const bool has_many_rows = *rc::gen::arbitrary<bool>();
  const i64 rows = *rc::gen::inRange<i64>(0, has_many_rows ? 1200 : 9);
  const i64 n = *rc::gen::inRange<i64>(1, has_many_rows ? 9 : 1200);
  const bool are_zeros = *rc::gen::arbitrary<bool>();
  const auto x = are_zeros ? std::vector<T>(static_cast<size_t>(rows * n))
                           : random_numbers<T>(static_cast<size_t>(rows * n), 1);
  std::vector<double> of_rows;
  for (i64 t = 0; t < rows; ++t) {
    std::vector<double> of_row;
    for (i64 k = 0; k < n; ++k) {
      const auto number = static_cast<double>(x[static_cast<size_t>(t * n + k)]);
      of_row.push_back(number * number);
    }
    of_rows.push_back(sum_in_lanes(of_row, lanes_for(n)));
  }
  const double sum = sum_in_lanes(of_rows, lanes_for(rows));
  double* squares = machine.template poisoned<double>(static_cast<size_t>(rows));
  double* root = machine.template poisoned<double>(1);
  machine.run(SquareRows<T>{{machine.put(x), rows, n}, n, squares});
  machine.run(RootMeanSquare{squares, rows, rows * n, root});
  const double expected = sum > 0 ? std::sqrt(sum / static_cast<double>(rows * n)) : 1;
  RC_ASSERT(machine.get(squares, of_rows.size()) == of_rows);
  RC_ASSERT(machine.get(root, 1).front() == expected);
}

template <class Machine, class T>
void compare_law() {
  Machine machine;
  const i64 rows = *rc::gen::inRange<i64>(0, 9);
  const i64 columns = *rc::gen::inRange<i64>(1, 400);
  const i64 wide = columns + *rc::gen::inRange<i64>(0, 5);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto a = random_numbers<T>(static_cast<size_t>(rows * wide), seed);
  auto b = a;
  const int faults = b.empty() ? 0 : *rc::gen::inRange(0, 6);
  for (int f = 0; f < faults; ++f) {
    const size_t at = hashed(seed, static_cast<std::uint64_t>(f)) % b.size();
    b[at] = random_numbers<T>(1, seed + static_cast<std::uint64_t>(f) + 1)[0];
    if constexpr (std::is_floating_point_v<T>) {
      if (f == 5) b[at] = std::numeric_limits<T>::quiet_NaN();
    }
  }
  const double tolerance = std::is_same_v<T, Field> ? 0 : 0.01;
  const i64 first = *rc::gen::inRange<i64>(0, 9);
  const i64 stride = wide + first;
  Disagreement expected;
  for (i64 t = 0; t < rows; ++t) {
    for (i64 c = 0; c < columns; ++c) {
      const auto at = static_cast<size_t>(t * wide + c);
      double apart = 0;
      if constexpr (std::is_same_v<T, Field>) {
        apart = a[at].v == b[at].v ? 0 : 1;
      } else {
        apart = std::abs(static_cast<double>(a[at]) - static_cast<double>(b[at])) / 0.5;
      }
      if (apart > expected.worst) expected.worst = apart;
      if (std::isnan(apart)) expected.has_nan = true;
      if (apart <= tolerance) continue;
      if (expected.mismatches++ == 0)
        expected.first = static_cast<std::uint64_t>(t * stride + first + c);
    }
  }
  const double* const scale = machine.put(std::vector<double>{0.5});
  Disagreement* found = machine.put(std::vector<Disagreement>(1));
  machine.compare(CompareRows<T>{{machine.put(a), rows, wide},
                                 {machine.put(b), rows, wide},
                                 columns,
                                 scale,
                                 tolerance,
                                 stride,
                                 first},
                  found);
  RC_ASSERT(machine.get(found, 1).front() == expected);
}

}  // namespace shardtool::kernels
