#include "lib/check/data/packed_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/base/text.h"
#include "lib/check/data/logical_values.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/packed_extents.h"
#include "lib/model/packed_format.h"
#include "lib/model/packed_inputs.h"

namespace shardtool::check {
namespace {

/// Groups that the inputs of a weight may be in.
struct GroupRule {
  i64 groups = 0;
  i64 in_order = 0;  ///< inputs per group if group numbers count up; 0: in any order
};

/// Inputs in a wrong group.
struct WrongGroups {
  i64 count = 0;
  i64 input = 0;  ///< the first of them
  i64 group = 0;
};

GroupRule group_rule(const CheckedModel& model, const model::PackedWeight& weight) {
  GroupRule rule{model::groups_of_inputs(weight, model.tensors), 0};
  if (!weight.format->are_groups_in_order) return rule;
  const i64 inputs = model::inputs_of(weight);
  const i64 size = weight.group_size > 0 ? weight.group_size : inputs;
  // Another number of groups is a finding about the scales.
  if (size > 0 && ceil_div(inputs, size) == rule.groups) rule.in_order = size;
  return rule;
}

WrongGroups wrong_groups(const std::vector<i64>& groups, const GroupRule& rule) {
  WrongGroups wrong;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto input = static_cast<i64>(i);
    const bool is_right = rule.in_order > 0 ? groups[i] == input / rule.in_order
                                            : groups[i] >= 0 && groups[i] < rule.groups;
    if (!is_right && wrong.count++ == 0) wrong = {1, input, groups[i]};
  }
  return wrong;
}

/// Reads the whole vector; nullopt if the shards do not make one, or for another dtype.
std::optional<std::vector<i64>> stored_numbers(const DataTensor& tensor,
                                               std::span<const index::ValueShift> shifts,
                                               std::span<const DataFile> files,
                                               const exec::KeptRanges& kept) {
  const TensorSpec& spec = tensor.spec;
  if (spec.dtype != Dtype::kI32 && spec.dtype != Dtype::kI64) return std::nullopt;
  try {
    return logical_values(tensor, shifts, files, kept);
  } catch (const Error& error) {
    const ErrorCode code = error.code();
    const bool is_known = code == ErrorCode::kCoverage || code == ErrorCode::kDataMismatch;
    if (!is_known && code != ErrorCode::kLimit) throw;
    return std::nullopt;
  }
}

/// Calls accepts(numbers) with what the shards may mean, until one is accepted: the numbers of the
/// unsharded tensor, and without a manifest also the stored ones, where each makes one vector.
template <class Accepts>
void read_until(const DataTensor& tensor, std::span<const DataFile> files,
                const exec::KeptRanges& kept, Accepts accepts) {
  const auto numbers = stored_numbers(tensor, tensor.shifts, files, kept);
  if ((numbers && accepts(*numbers)) || !tensor.may_be_plain) return;
  if (const auto plain = stored_numbers(tensor, {}, files, kept)) accepts(*plain);
}

/// Returns the wrong groups of a tensor by the better of its readings.
WrongGroups wrong_groups(const DataTensor& tensor, const GroupRule& rule,
                         std::span<const DataFile> files, const exec::KeptRanges& kept) {
  std::optional<WrongGroups> least;
  read_until(tensor, files, kept, [&](const std::vector<i64>& groups) {
    const WrongGroups wrong = wrong_groups(groups, rule);
    if (!least || wrong.count < least->count) least = wrong;
    return wrong.count == 0;
  });
  return least.value_or(WrongGroups{});
}

/// Returns the first holder of an element of a vector.
size_t holder_with(const index::HolderSet& holders, i64 element) {
  for (int h = 0; h < holders.size(); ++h) {
    const index::AxisMap map = holders.region(h).front();
    const bool has_it = std::ranges::any_of(map.pieces(), [&](const index::Piece& piece) {
      return piece.global <= element && element < piece.global_end();
    });
    if (has_it) return static_cast<size_t>(h);
  }
  return 0;
}

Finding finding_of_groups(const DataTensor& tensor, const GroupRule& rule, const WrongGroups& wrong,
                          std::span<const DataFile> files) {
  const size_t holder = holder_with(*tensor.side.holders, wrong.input);
  Finding finding{.rule = CheckRule::kGroupIndex,
                  .message = fmt::format("{} of {} in a wrong group", wrong.count,
                                         plural(tensor.spec.shape[0], "input")),
                  .file = files[static_cast<size_t>(tensor.side.slots[holder].file)].shown,
                  .tensor = tensor.spec.name,
                  .rank = tensor.ranks.empty() ? -1 : tensor.ranks[holder],
                  .found = fmt::format("input {} in group {}", wrong.input, wrong.group),
                  .expected = fmt::format("groups 0 to {}", rule.groups - 1)};
  if (rule.in_order == 0) return finding;
  finding.expected = fmt::format("group {}, since groups have {} and are in order",
                                 wrong.input / rule.in_order, plural(rule.in_order, "input"));
  finding.fix = "if the model was quantised with activation order, say \"desc_act\": true";
  return finding;
}

Finding finding_of_shape(const DataTensor& tensor, std::span<const DataFile> files,
                         const std::string& other, const Shape& said) {
  return {.rule = CheckRule::kScaleShape,
          .message = "the recorded shape of a packed weight does not match " + other,
          .file = files[static_cast<size_t>(tensor.side.slots.front().file)].shown,
          .tensor = tensor.spec.name,
          .found = shardtool::to_string(said)};
}

/// Compares the recorded shape of a weight with the extents of its codes. Returns true if they fit;
/// the weight then has the recorded shape.
bool check_shape(model::PackedWeight& weight, const DataTensor& tensor,
                 std::span<const DataFile> files, const exec::KeptRanges& kept,
                 Findings& findings) {
  std::optional<Shape> said;  // the first reading
  bool fits = false;
  read_until(tensor, files, kept, [&](const Shape& shape) {
    fits = model::fits_codes(shape, weight);
    if (!said || fits) said = shape;
    return fits;
  });
  if (fits) weight.spec.shape = *said;
  if (fits || !said) return fits;
  const i64 inputs = model::inputs_of(weight);
  Finding finding = finding_of_shape(tensor, files, "its codes", *said);
  finding.expected = fmt::format("{} and {} to {}", plural(weight.spec.shape[0], "output"),
                                 inputs - weight.per_word + 1, plural(inputs, "input"));
  finding.fix = "take all tensors of the weight from the same model";
  findings.add(std::move(finding));
  return false;
}

/// Recorded shapes by the numbers of their weights.
using RecordedShapes = std::map<size_t, const DataTensor*>;

/// Compares recorded shapes with the inputs that the model reads: the codes may have room for both.
void check_inputs(const CheckedModel& model, std::span<const model::PackedWeight> weights,
                  const RecordedShapes& recorded, std::span<const DataFile> files,
                  Findings& findings) {
  std::string why_not;
  const auto graph = recorded.empty() ? nullptr : model::find_graph(model.config, why_not);
  if (graph == nullptr) return;
  for (const auto& [number, inputs] :
       model::other_inputs(graph, model.config, model.tensors, weights)) {
    const auto found = recorded.find(number);
    if (found == recorded.end()) continue;
    Finding finding =
        finding_of_shape(*found->second, files, "config.json", weights[number].spec.shape);
    finding.expected = plural(inputs, "input");
    finding.fix = "take config.json and weights from the same model";
    findings.add(std::move(finding));
  }
}

}  // namespace

void check_packed_numbers(const CheckedModel& model, std::span<const DataTensor> tensors,
                          std::span<const DataFile> files, const exec::KeptRanges& kept,
                          Findings& findings) {
  const bool wants_groups = findings.wants(CheckRule::kGroupIndex);
  const bool wants_shapes = findings.wants(CheckRule::kScaleShape);
  if (!wants_groups && !wants_shapes) return;
  NameViewMap<const DataTensor*> by_name;
  for (const DataTensor& tensor : tensors) by_name.emplace(tensor.spec.name, &tensor);
  const auto leave_out = [](const Error&, const std::string&) {};
  const auto read = [&](std::optional<size_t> part) -> const DataTensor* {
    const auto found = part ? by_name.find(model.tensors[*part].name) : by_name.end();
    return found == by_name.end() ? nullptr : found->second;
  };
  RecordedShapes recorded;
  auto weights = model::packed_weights(model.config, model.tensors, leave_out);
  for (size_t w = 0; w < weights.size(); ++w) {
    model::PackedWeight& weight = weights[w];
    const DataTensor* const shape = wants_shapes ? read(weight.shape) : nullptr;
    if (shape != nullptr && check_shape(weight, *shape, files, kept, findings)) recorded[w] = shape;
    const DataTensor* const groups = wants_groups ? read(weight.groups) : nullptr;
    if (groups == nullptr) continue;
    const GroupRule rule = group_rule(model, weight);
    const WrongGroups wrong = wrong_groups(*groups, rule, files, kept);
    if (wrong.count > 0) findings.add(finding_of_groups(*groups, rule, wrong, files));
  }
  check_inputs(model, weights, recorded, files, findings);
}

}  // namespace shardtool::check
