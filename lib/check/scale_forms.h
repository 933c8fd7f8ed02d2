#pragma once

#include <string>
#include <string_view>

#include "lib/base/name_map.h"
#include "lib/base/tensor_spec.h"
#include "lib/check/findings.h"
#include "lib/check/model.h"

namespace shardtool::check {

/// Tensors of a model by their names.
using SpecsByName = NameViewMap<const TensorSpec*>;

/// Replaces the end of a name by another one.
std::string with_end(std::string_view name, std::string_view end, std::string_view other);

/// True for floats of 8 bits, except E8M0, which is a scale.
bool is_float8(Dtype dtype);

/// ST04: types and shapes of quantised weights and of their scales and zero points, against each
/// other and against config.json; and the table of tensor-parallel sizes at which an equal cut
/// falls inside a block. Zero points that config.json says must be there.
void check_scale_forms(const CheckedModel& model, const SpecsByName& tensors, Findings& findings);

}  // namespace shardtool::check
