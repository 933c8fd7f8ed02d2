#include "lib/engine/side.h"

#include <fmt/format.h>

#include "lib/base/error.h"

namespace shardtool::engine {

index::Region Side::region(size_t tensor, i64 rank) const {
  auto region = layouts(tensor).region(rank);
  if (region) return *std::move(region);
  throw Error(ErrorCode::kUnsupported,
              fmt::format("device {} lacks a tensor that it computes with", rank))
      .tensor(tensors[tensor].name);
}

bool Side::is_turned(size_t tensor) const {
  const auto found = unpacked.find(tensor);
  return found != unpacked.end() && found->second.is_turned;
}

}  // namespace shardtool::engine
