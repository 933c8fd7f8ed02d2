#include "lib/engine/diagnosis/part_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/decode/decode.h"
#include "lib/engine/weights/row_chunks.h"

namespace shardtool::engine {
namespace {

using Row = PartDifference::Row;

std::uint64_t bits_at(const std::byte* bytes, i64 size) {
  std::uint64_t element = 0;
  std::memcpy(&element, bytes, static_cast<size_t>(size));
  return element;
}

double number(Dtype dtype, std::uint64_t element) {
  double value = 0;
  if (!kernels::is_computable(dtype)) return static_cast<double>(element);
  kernels::to_doubles(dtype, reinterpret_cast<const std::byte*>(&element), 1, &value);
  return value;
}

/// Maps the floats of a format to consecutive integers in value order.
i64 ordinal(std::uint64_t element, i64 size) {
  const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
  const auto magnitude = static_cast<i64>(element & (sign - 1));
  return (element & sign) != 0 ? -magnitude : magnitude;
}

i64 steps(Dtype dtype, std::uint64_t a, std::uint64_t b) {
  if (dtype_info(dtype).kind != DtypeKind::kFloat) return std::numeric_limits<i64>::max();
  const i64 size = bits(dtype) / 8;
  const i64 x = ordinal(a, size) / 2;  // half the range, so that the difference cannot overflow
  const i64 y = ordinal(b, size) / 2;
  constexpr i64 kFar = 1 << 20;
  if (std::abs(x - y) > kFar) return kFar;
  return std::abs(ordinal(a, size) - ordinal(b, size));
}

/// Writes an element so that another one is written otherwise.
std::string value_text(Dtype dtype, std::uint64_t element) {
  constexpr int kWord = 64;
  const int unused = kWord - bits(dtype);
  switch (dtype_info(dtype).kind) {
    case DtypeKind::kSigned:
      return fmt::format("{}", static_cast<std::int64_t>(element << unused) >> unused);
    case DtypeKind::kBool:
    case DtypeKind::kUnsigned:
      return fmt::format("{}", element);
    case DtypeKind::kFloat:
    case DtypeKind::kComplex:
      break;
  }
  const int digits = unused > 0 ? std::numeric_limits<float>::max_digits10
                                : std::numeric_limits<double>::max_digits10;
  return fmt::format("{:.{}g}", number(dtype, element), digits);
}

std::uint64_t reversed(std::uint64_t element, i64 size) {
  std::uint64_t result = 0;
  for (i64 i = 0; i < size; ++i) result = (result << 8) | ((element >> (8 * i)) & 0xff);
  return result;
}

/// Compares one matrix of a part with its expected content, row by row.
class Comparison {
 public:
  Comparison(const StoredPart& part, i64 outer) : size_(part.element_bytes()) {
    difference_.part = part;
    difference_.outer = outer;
    difference_.rows.assign(static_cast<size_t>(part.rows.local_size()), Row::kSame);
    difference_.columns.assign(static_cast<size_t>(part.columns.local_size()), false);
    difference_.elements = part.rows.image_size() * part.columns.image_size();
  }

  void add_row(i64 row, const std::byte* found, const std::byte* expected) {
    const StoredPart& part = difference_.part;
    if (!part.rows(row) ||
        std::memcmp(found, expected, static_cast<size_t>(part.row_bytes())) == 0) {
      return;
    }
    bool differs = false;
    bool is_zero = true;
    for (const index::Piece& piece : part.columns.pieces()) {
      for (i64 c = piece.local; c < piece.local_end(); ++c) {
        const std::uint64_t a = bits_at(found + c * size_, size_);
        const std::uint64_t b = bits_at(expected + c * size_, size_);
        is_zero = is_zero && a == 0;
        if (a == b) continue;
        differs = true;
        add_element(row, c, a, b);
      }
    }
    if (differs) difference_.rows[static_cast<size_t>(row)] = is_zero ? Row::kZero : Row::kDiffers;
  }

  std::optional<PartDifference> result() {
    if (difference_.differing == 0) return std::nullopt;
    if (greatest_ > 0) difference_.most_relative = most_apart_ / greatest_;
    return std::move(difference_);
  }

 private:
  void add_element(i64 row, i64 column, std::uint64_t found, std::uint64_t expected) {
    PartDifference& d = difference_;
    d.columns[static_cast<size_t>(column)] = true;
    if (d.differing++ == 0) {
      d.first_row = row;
      d.first_column = column;
      d.found = found;
      d.expected = expected;
    }
    d.reversed += reversed(expected, size_) == found ? 1 : 0;
    d.most_steps = std::max(d.most_steps, steps(d.part.dtype, found, expected));
    const double a = number(d.part.dtype, found);
    const double b = number(d.part.dtype, expected);
    d.nan += std::isnan(a) ? 1 : 0;
    d.infinite += std::isinf(a) ? 1 : 0;
    d.opposite += a == -b ? 1 : 0;
    d.nearer_zero += std::signbit(a) == std::signbit(b) && std::abs(a) < std::abs(b) ? 1 : 0;
    greatest_ = std::max(greatest_, std::abs(b));
    most_apart_ = std::max(most_apart_, std::abs(a - b));
    // No ratio to an expected 0: the number is not a multiple.
    const double ratio = b == 0 ? std::numeric_limits<double>::quiet_NaN() : a / b;
    if (d.differing == 1) d.least_ratio = d.most_ratio = ratio;
    d.least_ratio = std::isnan(ratio) ? ratio : std::min(d.least_ratio, ratio);
    d.most_ratio = std::isnan(ratio) ? ratio : std::max(d.most_ratio, ratio);
  }

  i64 size_;
  PartDifference difference_;
  double greatest_ = 0;
  double most_apart_ = 0;
};

std::optional<PartDifference> matrix_difference(const Side& whole, const Side& shards,
                                                const StoredPart& part, i64 outer) {
  const auto matrix = expected_matrix(part, outer);
  if (!matrix) return std::nullopt;
  Comparison comparison(part, outer);
  for (const auto [begin, end] : row_chunks(part.rows.local_size(), part.whole_row_bytes())) {
    const ByteRows found = stored_rows(shards, part, outer, begin, end);
    const ByteRows expected = whole_rows(whole, *matrix, begin, end);
    for (i64 r = begin; r < end; ++r) {
      const i64 at = (r - begin) * part.row_bytes();
      comparison.add_row(r, found.data() + at, expected.data() + at);
    }
  }
  return comparison.result();
}

}  // namespace

std::optional<PartDifference> part_difference(const Side& whole, const Side& shards,
                                              const StoredPart& part) {
  std::optional<PartDifference> first;
  std::vector<i64> outers;
  for (i64 outer = 0; outer < part.outer.local_size(); ++outer) {
    auto difference = matrix_difference(whole, shards, part, outer);
    if (!difference) continue;
    outers.push_back(outer);
    if (!first) first = std::move(difference);
  }
  if (first) first->outers = std::move(outers);
  return first;
}

std::string element_text(Dtype dtype, std::uint64_t found, std::uint64_t expected) {
  const double a = number(dtype, found);
  const double b = number(dtype, expected);
  std::string text = value_text(dtype, found) + " instead of " + value_text(dtype, expected);
  const i64 apart = steps(dtype, found, expected);
  constexpr i64 kFew = 64;
  if (a == -b && a != 0) return text + " (the sign is flipped)";
  if (apart <= kFew && !std::isnan(a) && !std::isnan(b)) text += fmt::format(" ({} ulp)", apart);
  return text;
}

}  // namespace shardtool::engine
