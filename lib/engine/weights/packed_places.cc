#include "lib/engine/weights/packed_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/model/packed_extents.h"

namespace shardtool::engine {
namespace {

Error lacks_number(const PackedPart& part, size_t tensor, i64 rank, const char* kind, i64 index) {
  return std::move(
      Error(ErrorCode::kDataMismatch,
            fmt::format("rank {} has {} {} of a weight and lacks its shard of a tensor", rank, kind,
                        index))
          .tensor(part.tensors[tensor].name));
}

}  // namespace

bool PartPlaces::has_weight_columns() const {
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c] != static_cast<i64>(c)) return false;
  }
  return true;
}

index::Interval PartPlaces::used_rows() const {
  index::Interval used;
  for (const i64 row : rows) {
    if (row == kPadding) continue;
    used = used.size() == 0
               ? index::Interval{row, row + 1}
               : index::Interval{std::min(used.begin, row), std::max(used.end, row + 1)};
  }
  return used;
}

PackedPlaces::PackedPlaces(const PackedPart& part, const StoredRows& rows)
    : part_(part), rows_(rows) {
  if (!part.weight.groups) return;
  const auto [begin, end] = range(Axis::kInputs);
  said_groups_ = read_numbers<double>(part, {*part.weight.groups, rows.rank, -1, begin, end}, 1);
}

PartPlaces PackedPlaces::codes() const {
  const size_t codes = part_.weight.codes;
  return by_rows(places(codes, Axis::kInputs, codes_per_number(Axis::kInputs)),
                 places(codes, Axis::kOutputs, codes_per_number(Axis::kOutputs)));
}

PartPlaces PackedPlaces::scales() const {
  const size_t scales = part_.weight.scales;
  return by_rows(groups(scales), places(scales, Axis::kOutputs, 1));
}

/// Zeros of neighbouring outputs are packed together in every format.
PartPlaces PackedPlaces::zeros() const {
  const size_t zeros = *part_.weight.zeros;
  return by_rows(groups(zeros), places(zeros, Axis::kOutputs, part_.weight.per_word));
}

bool PackedPlaces::are_rows(Axis axis) const {
  return (axis == Axis::kInputs) == part_.weight.format->has_input_rows;
}

/// Range of local inputs or outputs in the rows.
index::Interval PackedPlaces::range(Axis axis) const {
  if (are_rows(axis)) return {rows_.begin, rows_.end};
  return {0, map(axis).local_size()};
}

const index::AxisMap& PackedPlaces::map(Axis axis) const {
  return axis == Axis::kInputs ? part_.inputs : part_.outputs;
}

/// Axis of a part along inputs or outputs; nullopt for a part with one number.
std::optional<size_t> PackedPlaces::axis_of(size_t tensor, Axis axis) const {
  if (part_.tensors[tensor].shape.size() < 2) return std::nullopt;
  const size_t first = part_.weight.spec.shape.size() > 2 ? 1 : 0;
  return are_rows(axis) ? first : first + 1;
}

/// Index in a part of every input or output in range; `codes_per_number` of them share a stored
/// number.
std::vector<i64> PackedPlaces::places(size_t tensor, Axis axis, i64 codes_per_number) const {
  const auto [begin, end] = range(axis);
  std::vector<i64> places = globals_of(map(axis), begin, end);
  const auto of_part = axis_of(tensor, axis);
  if (!of_part) {
    std::ranges::replace_if(
        places, [](i64 at) { return at != kPadding; }, 0);
    return places;
  }
  const PartAxis stored(part_.layouts(tensor), *of_part, rows_.rank, codes_per_number);
  for (i64& place : places) {
    if (place == kPadding) continue;
    const auto local = stored.of_weight(place);
    if (!local) {
      const char* const kind = axis == Axis::kInputs ? "input" : "output";
      throw lacks_number(part_, tensor, rows_.rank, kind, place);
    }
    place = *local * codes_per_number + place % codes_per_number;
  }
  return places;
}

/// Group index of every input in range.
std::vector<i64> PackedPlaces::groups(size_t tensor) const {
  const auto [begin, end] = range(Axis::kInputs);
  std::vector<i64> groups = globals_of(part_.inputs, begin, end);
  const auto axis = axis_of(tensor, Axis::kInputs);
  const i64 size = said_groups_.empty() ? group_size() : 1;
  const auto stored =
      axis ? std::optional<PartAxis>(std::in_place, part_.layouts(tensor), *axis, rows_.rank, size)
           : std::nullopt;
  for (size_t i = 0; i < groups.size(); ++i) {
    const i64 input = groups[i];
    if (input == kPadding) continue;
    const i64 group = said_groups_.empty() ? input / size : static_cast<i64>(said_groups_[i]);
    std::optional<i64> local = group == 0 ? std::optional<i64>(0) : std::nullopt;
    if (stored) local = said_groups_.empty() ? stored->of_weight(input) : stored->of_stored(group);
    if (!local) {
      const size_t said_by = part_.weight.groups.value_or(tensor);
      throw Error(ErrorCode::kDataMismatch,
                  fmt::format("input {} is in group {} of scales, which rank {} lacks", input,
                              group, rows_.rank))
          .tensor(part_.tensors[said_by].name)
          .note("groups", std::to_string(axis ? part_.tensors[tensor].shape[*axis] : 1));
    }
    groups[i] = *local;
  }
  return groups;
}

PartPlaces PackedPlaces::by_rows(std::vector<i64> inputs, std::vector<i64> outputs) const {
  if (are_rows(Axis::kInputs)) return {std::move(inputs), std::move(outputs)};
  return {std::move(outputs), std::move(inputs)};
}

/// Neighbouring codes per element of the codes' layout. The last word of a row may have codes
/// beyond the inputs.
i64 PackedPlaces::codes_per_number(Axis axis) const {
  if (part_.weight.spec.shape.size() == 2) {
    return are_rows(axis) == part_.weight.format->is_packed_in_rows ? part_.weight.per_word : 1;
  }
  const auto of_codes = axis_of(part_.weight.codes, axis);
  const i64 numbers = part_.tensors[part_.weight.codes].shape[*of_codes];
  return numbers == 0 ? 1 : map(axis).global_size() / numbers;
}

/// Inputs per group of the whole weight.
i64 PackedPlaces::group_size() const {
  const TensorSpec& scales = part_.tensors[part_.weight.scales];
  const auto axis = axis_of(part_.weight.scales, Axis::kInputs);
  return model::inputs_per_group(part_.weight, scales, part_.inputs.global_size(),
                                 axis ? scales.shape[*axis] : 1);
}

}  // namespace shardtool::engine
