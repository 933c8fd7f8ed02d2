#include "lib/model/packed_extents.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::model {
namespace {

void require(bool fits, const TensorSpec& part, const std::string& expected) {
  if (fits) return;
  throw Error(ErrorCode::kShapeMismatch,
              "a tensor of a packed weight has other extents than its codes")
      .tensor(part.name)
      .note("found", to_string(part.shape))
      .note("expected", expected);
}

void require_one_number(std::optional<size_t> part, std::span<const TensorSpec> tensors) {
  if (part) require(element_count(tensors[*part].shape) == 1, tensors[*part], "one number");
}

bool is_stack(const PackedWeight& weight) {
  return weight.spec.shape.size() > 2;
}

i64 outputs_of(const PackedWeight& weight) {
  return is_stack(weight) ? weight.spec.shape.back() : weight.spec.shape.front();
}

/// Returns the number of groups of a weight's inputs, from its scales for `out` outputs.
i64 groups_of(const PackedWeight& weight, const TensorSpec& scales, i64 out) {
  const Shape& found = scales.shape;
  if (weight.format->has_input_rows) {
    require(found.size() == 2 && found[1] == out, scales, to_string(Shape{-1, out}));
    return found[0];
  }
  if (found.size() < 2) {
    require(element_count(found) == 1, scales, "one number, or a row for every output");
    return 1;
  }
  Shape expected = weight.spec.shape;
  if (is_stack(weight)) std::swap(expected[1], expected[2]);  // [experts, in, out]
  expected.back() = found.back();
  require(found == expected, scales, to_string(expected));
  return found.back();
}

Shape extents_of_zeros(const PackedWeight& weight, i64 groups, i64 out) {
  Shape extents = weight.format->has_input_rows ? Shape{groups, out} : Shape{out, groups};
  i64& packed = extents[weight.format->are_zeros_packed_in_rows ? 0 : 1];
  packed = ceil_div(packed, weight.per_word);
  return extents;
}

}  // namespace

void require_extents(const PackedWeight& weight, std::span<const TensorSpec> tensors) {
  const i64 out = outputs_of(weight);
  const i64 in = inputs_of(weight);
  const i64 groups = groups_of_inputs(weight, tensors);
  if (weight.zeros) {
    const TensorSpec& zeros = tensors[*weight.zeros];
    const Shape expected = extents_of_zeros(weight, groups, out);
    const i64 said = weight.group_size > 0 ? ceil_div(in, weight.group_size) : 1;
    // Zeros that have the groups of config.json show that the scales are the wrong ones.
    const bool fit_config = zeros.shape == extents_of_zeros(weight, said, out);
    require(zeros.shape == expected || !fit_config, tensors[weight.scales],
            plural(said, "group") + " of inputs");
    require(zeros.shape == expected, zeros, to_string(expected));
  }
  const auto require_vector = [&](std::optional<size_t> part, i64 numbers) {
    if (part)
      require(tensors[*part].shape == Shape{numbers}, tensors[*part], to_string(Shape{numbers}));
  };
  require_vector(weight.groups, in);
  require_vector(weight.shape, 2);
  require_one_number(weight.divisor, tensors);
  require_one_number(weight.factor, tensors);
}

i64 groups_of_inputs(const PackedWeight& weight, std::span<const TensorSpec> tensors) {
  return groups_of(weight, tensors[weight.scales], outputs_of(weight));
}

i64 inputs_of(const PackedWeight& weight) {
  return is_stack(weight) ? weight.spec.shape[1] : weight.spec.shape.back();
}

i64 inputs_per_group(const PackedWeight& weight, const TensorSpec& scales, i64 inputs, i64 groups) {
  if (groups == 1) return std::max<i64>(inputs, 1);
  const i64 said = weight.group_size;
  if (said > 0 && ceil_div(inputs, said) == groups) return said;
  if (groups > 0 && inputs % groups == 0 && (said < 0 || said % (inputs / groups) == 0)) {
    return inputs / groups;
  }
  throw Error(ErrorCode::kUnsupported, "scales are not one per group of inputs")
      .tensor(scales.name)
      .note("found", fmt::format("{} for {} inputs", groups, inputs))
      .note("expected", fmt::format("groups of {}", said));
}

}  // namespace shardtool::model
