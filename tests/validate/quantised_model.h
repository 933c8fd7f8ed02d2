#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/support/checkpoint_files.h"

/// Small models of random sizes with weights in every quantised form that the program supports. Any
/// bits are valid weights.
namespace shardtool::test {

using Random = std::mt19937;
i64 between(Random& random, i64 low, i64 high);
template <class T>
const T& one_of(Random& random, const std::vector<T>& values) {
  return values[static_cast<size_t>(between(random, 0, std::ssize(values) - 1))];
}

/// "fp8 block", "gptq act order", ...: one per arrangement of weights and their parts.
const std::vector<std::string>& quantised_forms();

struct QuantisedModel {
  Tensors tensors;
  std::string config;
};
/// Makes a model. The number of heads is a multiple of `tp` in two of three cases.
QuantisedModel quantised_model(const std::string& form, i64 tp, Random& random);
/// Makes a model of a pack-quantized form whose MLP's last words have codes beyond its inputs.
QuantisedModel padded_model(const std::string& form, i64 tp, Random& random);

}  // namespace shardtool::test
