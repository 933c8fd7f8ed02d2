#include "lib/engine/weights/unpacked_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/unpack/unpack.h"
#include "lib/base/error.h"
#include "lib/engine/weights/packed_grid.h"
#include "lib/engine/weights/packed_places.h"

namespace shardtool::engine {
namespace {

/// Throws kDataMismatch if the checkpoint's recorded shape differs from the shape of the codes.
void require_shape(const PackedPart& part, i64 rank) {
  if (!part.weight.shape) return;
  const size_t tensor = *part.weight.shape;
  const auto said = read_numbers<double>(part, {tensor, rank, -1, 0, 2}, 1);
  const Shape found{static_cast<i64>(said[0]), static_cast<i64>(said[1])};
  if (found == part.weight.spec.shape) return;
  throw Error(ErrorCode::kDataMismatch,
              "the recorded shape of a packed weight does not match its codes")
      .tensor(part.tensors[tensor].name)
      .note("found", to_string(found))
      .note("expected", to_string(part.weight.spec.shape));
}

/// Stored numbers per row of a part on the device; a word counts as one.
i64 row_width(const PackedPart& part, size_t tensor, i64 rank) {
  const auto region = part.layouts(tensor).region(rank);
  if (!region) {
    throw Error(ErrorCode::kUnsupported, "a rank lacks a shard of a weight that it has")
        .tensor(part.tensors[tensor].name)
        .note("device", std::to_string(rank));
  }
  const size_t row_axis = part.weight.spec.shape.size() > 2 ? 1 : 0;
  i64 width = 1;
  for (size_t axis = row_axis + 1; axis < region->size(); ++axis)
    width *= (*region)[axis].local_size();
  return width;
}

/// Multiplies every scale by the common factor, or divides it by the common divisor.
template <class T>
void apply_common_scale(const PackedPart& part, i64 rank, std::vector<T>& scales) {
  const auto number = [&](size_t tensor) {
    return static_cast<T>(read_numbers<double>(part, {tensor, rank, -1, 0, 1}, 1).front());
  };
  if (part.weight.factor) {
    const T factor = number(*part.weight.factor);
    for (T& scale : scales) scale *= factor;
  }
  if (part.weight.divisor) {
    const T divisor = number(*part.weight.divisor);
    for (T& scale : scales) scale /= divisor;
  }
}

/// Consecutive rows of scales or zeros.
template <class T>
struct NumberRows {
  i64 begin = 0;
  i64 width = 0;
  std::vector<T> numbers;

  const T* row(i64 r) const { return numbers.data() + (r - begin) * width; }
};

template <class T>
NumberRows<T> read_scales(const PackedPart& part, const StoredRows& rows, const PartPlaces& at) {
  const size_t tensor = part.weight.scales;
  const auto [begin, end] = at.used_rows();
  const bool is_one = part.tensors[tensor].shape.size() < 2;
  const StoredRows stored{tensor, rows.rank, is_one ? -1 : rows.outer, begin, end};
  const i64 width = row_width(part, tensor, rows.rank);
  NumberRows<T> scales{begin, width,
                       read_numbers<T>(part, stored, width, part.weight.format->scale_dtype)};
  apply_common_scale(part, rows.rank, scales.numbers);
  return scales;
}

template <class T>
NumberRows<T> read_zeros(const PackedPart& part, const StoredRows& rows, const PartPlaces& at,
                         const std::vector<T>& value_of) {
  const size_t tensor = *part.weight.zeros;
  const bool are_rows_packed = part.weight.format->are_zeros_packed_in_rows;
  const auto [begin, end] = at.used_rows();
  const i64 width =
      row_width(part, tensor, rows.rank) * (are_rows_packed ? 1 : part.weight.per_word);
  const PackedGrid grid(part.weight, part.stored, part.tensors[tensor].dtype,
                        {tensor, rows.rank, rows.outer, begin, end}, width, are_rows_packed);
  NumberRows<T> zeros{begin, width, std::vector<T>(static_cast<size_t>((end - begin) * width))};
  std::vector<std::uint8_t> codes(static_cast<size_t>(width));
  const T offset = static_cast<T>(part.weight.zero_offset);
  T* out = zeros.numbers.data();
  for (i64 r = begin; r < end; ++r) {
    grid.codes_of_row(r, codes.data());
    for (const std::uint8_t code : codes) *out++ = value_of[code] + offset;
  }
  return zeros;
}

}  // namespace

template <class T>
void unpack_rows(const PackedPart& part, const StoredRows& rows, T* values) {
  const model::PackedWeight& weight = part.weight;
  const model::PackedFormat& format = *weight.format;
  const i64 width = format.has_input_rows ? part.outputs.local_size() : part.inputs.local_size();
  if (rows.end <= rows.begin || width == 0) return;
  require_shape(part, rows.rank);
  const PackedPlaces places(part, rows);
  const PartPlaces at_codes = places.codes();
  const PartPlaces at_scales = places.scales();
  const PartPlaces at_zeros = weight.zeros ? places.zeros() : at_scales;
  // In the order of the weight's columns, as for rows that are inputs.
  const bool are_plain = at_codes.has_weight_columns() && at_zeros.has_weight_columns() &&
                         at_scales.has_weight_columns();
  const kernels::ColumnPlaces columns{at_codes.columns.data(), at_zeros.columns.data(),
                                      at_scales.columns.data()};
  const std::vector<T> value_of = kernels::values_of_codes<T>(format.code, weight.bits);
  const NumberRows<T> scales = read_scales<T>(part, rows, at_scales);
  const NumberRows<T> zeros = weight.zeros ? read_zeros<T>(part, rows, at_zeros, value_of)
                                           : NumberRows<T>{scales.begin, scales.width,
                                                           std::vector<T>(scales.numbers.size())};
  const auto [begin, end] = at_codes.used_rows();
  const i64 codes_in_row =
      row_width(part, weight.codes, rows.rank) * (format.is_packed_in_rows ? 1 : weight.per_word);
  const PackedGrid grid(weight, part.stored, part.tensors[weight.codes].dtype,
                        {weight.codes, rows.rank, rows.outer, begin, end}, codes_in_row,
                        format.is_packed_in_rows);
  std::vector<std::uint8_t> codes(static_cast<size_t>(codes_in_row));
  for (size_t r = 0; r < at_codes.rows.size(); ++r, values += width) {
    if (at_codes.rows[r] == kPadding) {
      std::fill_n(values, width, T{0});
      continue;
    }
    grid.codes_of_row(at_codes.rows[r], codes.data());
    const kernels::RowNumbers<T> row{codes.data(), zeros.row(at_zeros.rows[r]),
                                     scales.row(at_scales.rows[r])};
    if (are_plain) {
      kernels::unpack_row(row, value_of, width, values);
    } else {
      kernels::unpack_row(row, columns, value_of, width, values);
    }
  }
}

template void unpack_rows<float>(const PackedPart&, const StoredRows&, float*);
template void unpack_rows<double>(const PackedPart&, const StoredRows&, double*);

}  // namespace shardtool::engine
