#include "shardtool/engine/unpacked_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "shardtool/base/error.h"
#include "shardtool/engine/packed_grid.h"
#include "shardtool/kernels/decode/decode.h"
#include "shardtool/kernels/decode/element.h"

namespace shardtool::engine {
namespace {

constexpr i64 kPadding = -1;

/// Stored rows of one part of the weight, as numbers.
template <class T>
std::vector<T> read_numbers(const PackedPart& part, const StoredRows& rows, i64 columns,
                            std::optional<Dtype> instead = {}) {
  const Dtype dtype = instead.value_or(part.tensors[rows.tensor].dtype);
  const i64 count = (rows.end - rows.begin) * columns;
  std::vector<std::byte> bytes(static_cast<size_t>(count * bits(dtype) / 8));
  if (!bytes.empty()) part.stored.read(rows, bytes);
  std::vector<T> numbers(static_cast<size_t>(count));
  if constexpr (std::is_same_v<T, float>) {
    kernels::to_floats(dtype, bytes.data(), count, numbers.data());
  } else {
    kernels::to_doubles(dtype, bytes.data(), count, numbers.data());
  }
  return numbers;
}

/// The value of every code.
template <class T>
std::vector<T> values_of_codes(const model::PackedWeight& weight) {
  using Code = model::PackedFormat::Code;
  constexpr kernels::FloatFormat kE2M1{2, 1, 1, false, false};
  constexpr T kLargest = 6;
  const i64 codes = i64{1} << weight.bits;
  std::vector<T> values;
  for (i64 code = 0; code < codes; ++code) {
    const Code kind = weight.format->code;
    if (kind == Code::kE2M1) {
      // The largest code is a number here, where formats of eight bits have their NaN.
      const bool is_largest = (code & 7) == 7;
      const T size =
          is_largest
              ? kLargest
              : static_cast<T>(kernels::value_of(static_cast<std::uint32_t>(code & 7), kE2M1));
      values.push_back(code < codes / 2 ? size : -size);
    } else {
      values.push_back(static_cast<T>(kind == Code::kOffset ? code - codes / 2 : code));
    }
  }
  return values;
}

/// What the checkpoint says of the weight's extents must be what its codes fill.
void require_shape(const PackedPart& part, i64 rank) {
  if (!part.weight.shape) return;
  const size_t tensor = *part.weight.shape;
  const auto said = read_numbers<double>(part, {tensor, rank, -1, 0, 2}, 1);
  const Shape found{static_cast<i64>(said[0]), static_cast<i64>(said[1])};
  if (found == part.weight.spec.shape) return;
  throw Error(ErrorCode::kDataMismatch, "a packed weight's shape is not what its codes fill")
      .tensor(part.tensors[tensor].name)
      .note("found", to_string(found))
      .note("expected", to_string(part.weight.spec.shape));
}

/// How the groups of inputs lie on the device: the axis of the scales that numbers them.
index::AxisMap group_axis(const PackedPart& part, i64 rank) {
  const auto region = part.layouts(part.weight.scales).region(rank);
  if (!region) {
    throw Error(ErrorCode::kUnsupported, "a device lacks the scales of a weight that it has")
        .tensor(part.tensors[part.weight.scales].name);
  }
  if (region->size() < 2) return index::AxisMap::identity(1);
  return part.weight.format->has_input_rows ? region->front() : region->back();
}

/// That the device has of scales, zeros and group numbers what belongs to its part of the weight.
void require_cut_alike(const PackedPart& part, i64 rank, i64 groups) {
  const model::PackedWeight& weight = part.weight;
  const bool has_input_rows = weight.format->has_input_rows;
  const auto require = [&](size_t tensor, auto fits) {
    const auto region = part.layouts(tensor).region(rank);
    if (region && fits(*region)) return;
    throw Error(ErrorCode::kUnsupported,
                "a part of a packed weight is cut otherwise than its codes")
        .tensor(part.tensors[tensor].name)
        .note("device", std::to_string(rank));
  };
  require(weight.scales, [&](const index::Region& region) {
    const size_t axes = region.size();
    return axes < 2 || region[has_input_rows ? axes - 1 : axes - 2] == part.outputs;
  });
  if (weight.groups) {
    require(*weight.groups, [&](const index::Region& region) { return region[0] == part.inputs; });
  }
  if (!weight.zeros) return;
  require(*weight.zeros, [&](const index::Region& region) {
    const i64 out = region[has_input_rows ? 1 : 0].local_size();
    const bool is_packed_by_output = has_input_rows != weight.format->are_zeros_packed_in_rows;
    const i64 words = ceil_div(part.outputs.local_size(), weight.per_word);
    return region[has_input_rows ? 0 : 1].local_size() == groups &&
           out == (is_packed_by_output ? words : part.outputs.local_size());
  });
}

/// Inputs of one group. Groups may have been cut into equal parts.
i64 group_size(const PackedPart& part, i64 inputs, i64 groups) {
  if (groups == 1) return std::max<i64>(inputs, 1);
  const i64 said = part.weight.group_size;
  if (said > 0 && ceil_div(inputs, said) == groups) return said;
  if (groups > 0 && inputs % groups == 0 && (said < 0 || said % (inputs / groups) == 0)) {
    return inputs / groups;
  }
  throw Error(ErrorCode::kUnsupported, "scales are not one per group of inputs")
      .tensor(part.tensors[part.weight.scales].name)
      .note("found", fmt::format("{} for {} inputs", groups, inputs))
      .note("expected", fmt::format("groups of {}", said));
}

Error lacks_group(const PackedPart& part, i64 rank, i64 input, i64 group,
                  const index::AxisMap& axis) {
  const size_t said_by = part.weight.groups.value_or(part.weight.scales);
  return std::move(Error(ErrorCode::kDataMismatch,
                         fmt::format("input {} is in group {} of scales, which device {} lacks",
                                     input, group, rank))
                       .tensor(part.tensors[said_by].name)
                       .note("groups", std::to_string(axis.global_size()))
                       .note("has", to_string(axis)));
}

/// Of local inputs [begin, end) the local group; kPadding for inputs that are none.
std::vector<i64> groups_of(const PackedPart& part, i64 rank, i64 begin, i64 end) {
  const index::AxisMap axis = group_axis(part, rank);
  const index::AxisMap where = index::inverse(axis);
  std::vector<double> said;
  if (part.weight.groups) {
    said = read_numbers<double>(part, {*part.weight.groups, rank, -1, begin, end}, 1);
  }
  const i64 size =
      said.empty() ? group_size(part, part.inputs.global_size(), axis.global_size()) : 1;
  std::vector<i64> groups;
  for (i64 input = begin; input < end; ++input) {
    const auto global = part.inputs(input);
    if (!global) {
      groups.push_back(kPadding);
      continue;
    }
    const i64 group =
        said.empty() ? *global / size : static_cast<i64>(said[static_cast<size_t>(input - begin)]);
    const bool is_group = group >= 0 && group < axis.global_size();
    const auto local = is_group ? where(group) : std::nullopt;
    if (!local) throw lacks_group(part, rank, *global, group, axis);
    groups.push_back(*local);
  }
  return groups;
}

/// Every scale times the factor of all, or divided by their divisor.
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

/// Scales and zeros of the groups, by row and column: of weights with inputs in rows a row is a
/// group, else a row of the weight.
template <class T>
class GroupNumbers {
 public:
  GroupNumbers(const PackedPart& part, const StoredRows& rows, const std::vector<i64>& groups,
               const std::vector<T>& codes)
      : part_(part), is_by_group_(part.weight.format->has_input_rows) {
    const auto [least, most] = std::ranges::minmax(groups);
    begin_ = is_by_group_ ? std::max<i64>(0, least) : rows.begin;
    end_ = is_by_group_ ? most + 1 : rows.end;
    columns_ = is_by_group_ ? part.outputs.local_size() : group_axis(part, rows.rank).local_size();
    read_scales(rows);
    read_zeros(rows, codes);
  }

  const T* scales(i64 row) const { return scales_.data() + (is_one_ ? 0 : at(row)); }
  const T* zeros(i64 row) const { return zeros_.data() + at(row); }

 private:
  i64 at(i64 row) const { return (row - begin_) * columns_; }

  void read_scales(const StoredRows& rows) {
    const size_t tensor = part_.weight.scales;
    is_one_ = part_.tensors[tensor].shape.size() < 2;
    const StoredRows all{tensor, rows.rank, rows.outer, begin_, std::max(begin_, end_)};
    const StoredRows one{tensor, rows.rank, -1, 0, 1};
    scales_ = read_numbers<T>(part_, is_one_ ? one : all, is_one_ ? 1 : columns_,
                              part_.weight.format->scale_dtype);
    apply_common_scale(part_, rows.rank, scales_);
  }

  void read_zeros(const StoredRows& rows, const std::vector<T>& codes) {
    zeros_.resize(static_cast<size_t>(std::max<i64>(0, end_ - begin_) * columns_));
    if (!part_.weight.zeros) return;
    const PackedGrid grid(part_.weight, part_.stored, part_.tensors[*part_.weight.zeros].dtype,
                          {*part_.weight.zeros, rows.rank, rows.outer, begin_, end_}, columns_,
                          part_.weight.format->are_zeros_packed_in_rows);
    std::vector<std::uint8_t> row(static_cast<size_t>(columns_));
    const T offset = static_cast<T>(part_.weight.zero_offset);
    for (i64 r = begin_; r < end_; ++r) {
      grid.codes_of_row(r, row.data());
      T* const out = zeros_.data() + at(r);
      for (i64 c = 0; c < columns_; ++c) out[c] = codes[row[static_cast<size_t>(c)]] + offset;
    }
  }

  const PackedPart& part_;
  bool is_by_group_;
  bool is_one_ = false;  ///< scale for all
  i64 begin_ = 0, end_ = 0, columns_ = 0;
  std::vector<T> scales_, zeros_;
};

}  // namespace

template <class T>
void unpack_rows(const PackedPart& part, const StoredRows& rows, T* values) {
  const model::PackedFormat& format = *part.weight.format;
  const i64 width = format.has_input_rows ? part.outputs.local_size() : part.inputs.local_size();
  if (rows.end <= rows.begin || width == 0) return;
  require_shape(part, rows.rank);
  require_cut_alike(part, rows.rank, group_axis(part, rows.rank).local_size());
  const auto groups = format.has_input_rows ? groups_of(part, rows.rank, rows.begin, rows.end)
                                            : groups_of(part, rows.rank, 0, width);
  const std::vector<T> value_of = values_of_codes<T>(part.weight);
  const GroupNumbers<T> numbers(part, rows, groups, value_of);
  const PackedGrid grid(part.weight, part.stored, part.tensors[part.weight.codes].dtype,
                        {part.weight.codes, rows.rank, rows.outer, rows.begin, rows.end}, width,
                        format.is_packed_in_rows);
  std::vector<std::uint8_t> codes(static_cast<size_t>(width));
  for (i64 r = rows.begin; r < rows.end; ++r, values += width) {
    grid.codes_of_row(r, codes.data());
    const i64 group_of_row =
        format.has_input_rows ? groups[static_cast<size_t>(r - rows.begin)] : r;
    if (group_of_row == kPadding) {
      std::fill_n(values, width, T{0});
      continue;
    }
    const T* const scales = numbers.scales(group_of_row);
    const T* const zeros = numbers.zeros(group_of_row);
    for (i64 c = 0; c < width; ++c) {
      const auto column = static_cast<size_t>(c);
      const i64 at = format.has_input_rows ? c : groups[column];
      values[c] = at == kPadding ? 0 : (value_of[codes[column]] - zeros[at]) * scales[at];
    }
  }
}

template void unpack_rows<float>(const PackedPart&, const StoredRows&, float*);
template void unpack_rows<double>(const PackedPart&, const StoredRows&, double*);

}  // namespace shardtool::engine
