#pragma once

#include <vector>

#include "tests/support/checkpoint_files.h"
#include "tests/validate/quantised_model.h"

namespace shardtool::test {

/// The numbers of a tensor of floats or bytes.
std::vector<double> doubles_of(const Tensor& tensor);

/// The weights of a model as floats, by name, with their types in F64: read element by element from
/// the definitions of the formats, without the code under test.
Tensors read_weights(const QuantisedModel& model);

}  // namespace shardtool::test
