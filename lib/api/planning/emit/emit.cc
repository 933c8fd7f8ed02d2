#include "lib/api/planning/emit/emit.h"

#include <algorithm>
#include <array>

namespace shardtool::api {
namespace {

constexpr auto kEmitNames = std::to_array<std::string_view>({"dtensor", "nccl-m2n", "mooncake"});

}  // namespace

std::string_view to_string(EmitFormat format) {
  return kEmitNames[static_cast<size_t>(format)];
}

std::optional<EmitFormat> emit_format_named(std::string_view name) {
  const auto* found = std::ranges::find(kEmitNames, name);
  if (found == kEmitNames.end()) return std::nullopt;
  return static_cast<EmitFormat>(found - kEmitNames.begin());
}

std::string emitted(EmitFormat format, const EmittedLayout* from, const EmittedLayout& to,
                    const std::string& model) {
  switch (format) {
    case EmitFormat::kDTensor:
      return dtensor_json(to);
    case EmitFormat::kMooncake:
      return mooncake_json(to, model);
    case EmitFormat::kNcclM2n:
      break;
  }
  if (from == nullptr) {
    throw Error(ErrorCode::kUsage, "nccl-m2n takes a reshard, and this is one layout")
        .help(
            "plan from shards to another layout: shardtool plan OUT --to-mesh tp=8 --emit "
            "nccl-m2n");
  }
  return nccl_m2n_json(*from, to);
}

}  // namespace shardtool::api
