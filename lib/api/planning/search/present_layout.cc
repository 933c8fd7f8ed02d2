#include "lib/api/planning/search/present_layout.h"

#include <fmt/format.h>

#include <utility>

#include "lib/api/planning/plan_file.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::api {
namespace {

Error not_there(const std::string& path, const TensorSpec& wanted, const std::string& why) {
  return std::move(Error(ErrorCode::kCoverage, fmt::format("the layout of today {}", why))
                       .tensor(wanted.name)
                       .note("layout", path)
                       .help("give a layout of the same tensors as the model's"));
}

/// Throws if today's tensor is not there, or is another one.
void check_same(const std::string& path, const TensorSpec& wanted, const LogicalTensor* found) {
  if (found == nullptr) throw not_there(path, wanted, "lacks a tensor of the model");
  const TensorSpec& spec = found->spec;
  if (spec.dtype == wanted.dtype && spec.shape == wanted.shape) return;
  throw not_there(path, wanted,
                  fmt::format("has a tensor as {} {}, and the model has it as {} {}",
                              to_string(spec.dtype), shardtool::to_string(spec.shape),
                              to_string(wanted.dtype), shardtool::to_string(wanted.shape)));
}

}  // namespace

PresentLayout::PresentLayout(const std::string& path) : path_(path) {
  if (path.ends_with(".json")) {
    const PlanRecipe recipe = read_plan(path);
    shards_ = open_planned(recipe, recipe.sources, path);
    planned_ = apply_recipe(recipe, shards_, path);
    holders_ = resolved_holders(planned_->resolution, shards_.tensors.size());
    devices_ = planned_->resolution.mesh.size();
    return;
  }
  shards_ = open_logical({path}, {.takes_files_of_ranks = true});
  if (!shards_.is_sharded()) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' has no shards of devices, so that it is no "
                                               "layout to move from",
                                               quote_for_message(path)))
        .help("--from takes an output folder of `split` or `reshard`, or a file of `plan -o`");
  }
  for (const LogicalTensor& tensor : shards_.tensors)
    holders_.push_back({tensor.side.holders.get(), tensor.ranks});
  devices_ = shards_.parts.front().manifest->mesh.size();
}

EmittedLayout PresentLayout::emitted() const {
  return planned_ ? emitted_layout(planned_->resolution, planned_->specs) : emitted_shards(shards_);
}

MoveStart PresentLayout::start_of(std::span<const LogicalTensor> tensors) const {
  const TensorsByName named = tensors_by_name(shards_);
  MoveStart start{{}, devices_};
  for (const LogicalTensor& wanted : tensors) {
    const auto found = named.find(wanted.spec.name);
    const LogicalTensor* tensor = found == named.end() ? nullptr : found->second;
    check_same(path_, wanted.spec, tensor);
    start.holders.push_back(holders_[static_cast<size_t>(tensor - shards_.tensors.data())]);
  }
  return start;
}

}  // namespace shardtool::api
