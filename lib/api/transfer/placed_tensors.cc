#include "lib/api/transfer/placed_tensors.h"

namespace shardtool::api {

PlacedTensors placed_tensors(const AppliedMapping& applied) {
  PlacedTensors placed;
  placed.specs.reserve(applied.resolution.tensors.size());
  placed.stored.reserve(applied.resolution.tensors.size());
  for (const mapping::ResolvedTensor& tensor : applied.resolution.tensors) {
    placed.specs.push_back(applied.specs[tensor.tensor]);
    placed.stored.push_back(tensor.layout);
  }
  placed.layouts = mapping::computed_layouts(applied.resolution);
  return placed;
}

std::optional<std::string> why_not_this_model(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kUnsupported:
    case ErrorCode::kShapeMismatch:
    case ErrorCode::kSizeExpression:
    case ErrorCode::kConfig:
      return error.tensor_name().empty() ? error.message()
                                         : error.message() + ": " + error.tensor_name();
    default:
      return std::nullopt;
  }
}

}  // namespace shardtool::api
