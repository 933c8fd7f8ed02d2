#include "lib/ops/bound_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::ops {

i64 ModelSizes::size(const Dim& dim) const {
  const mapping::DeclaredSize declared = [this](const std::string& name) -> std::optional<i64> {
    const auto found = sizes.find(name);
    if (found != sizes.end()) return found->second;
    if (const auto bad = unusable.find(name); bad != unusable.end()) throw bad->second;
    if (const auto none = absent.find(name); none != absent.end()) throw none->second;
    throw Error(ErrorCode::kUnknownName,
                fmt::format("the graph of {} has no size '{}'", family, name));
  };
  i64 total = 0;
  for (const mapping::FoldedAxes& section : dim.sections) {
    const auto sum = checked_add(total, mapping::product_of(section, 0, declared));
    if (!sum) throw Error(ErrorCode::kShapeMismatch, "the sizes of an axis are above 2^63");
    total = *sum;
  }
  return total;
}

const std::vector<WeightRef>& refs_of(const BoundOp& bound) {
  return bound.form == nullptr ? bound.op->weights : bound.form->weights;
}

size_t features_axis(const WeightRef& ref) {
  const auto found = std::find_if(ref.shape.begin(), ref.shape.end(),
                                  [](const Dim& dim) { return dim.text != "1"; });
  return found == ref.shape.end() ? 0 : static_cast<size_t>(found - ref.shape.begin());
}

bool is_true(const Word& word, const mapping::ModelConfig& config) {
  const nlohmann::json* value = word.config.empty() ? nullptr : config.find(word.config);
  if (value == nullptr || value->is_null()) return word.value == "true";
  if (value->is_boolean()) return value->get<bool>();
  throw Error(ErrorCode::kConfig,
              fmt::format("'{}' in {} is neither true nor false", word.config, config.file()))
      .note("found", quote_for_message(value->dump(), 60));
}

}  // namespace shardtool::ops
