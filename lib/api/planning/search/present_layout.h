#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/api/planning/emit/emitted_layout.h"
#include "lib/api/planning/plan_reshard.h"

namespace shardtool::api {

/// The layout that a server has today: that of an output folder, or the one in which the reshard of
/// a plan file ends. It holds the tensors of one model, whatever their order.
class PresentLayout {
 public:
  /// Opens an output folder, or a file of `plan -o` and the input that it was made for. Throws
  /// kUsage for a folder without shards, and the errors of opening, of read_plan, of
  /// open_planned and of apply_recipe.
  explicit PresentLayout(const std::string& path);
  PresentLayout(const PresentLayout&) = delete;
  PresentLayout& operator=(const PresentLayout&) = delete;

  /// Returns the start of a move of these tensors. Throws kCoverage with the tensor's name if one
  /// is not there, or in another type or shape. Valid as long as this object is.
  MoveStart start_of(std::span<const LogicalTensor> tensors) const;

  /// Returns the layout for other programs. Valid as long as this object is.
  EmittedLayout emitted() const;

 private:
  std::string path_;
  LogicalCheckpoint shards_;
  std::optional<AppliedMapping> planned_;  ///< destination of a plan
  std::vector<plan::Holders> holders_;     ///< by tensor of shards_
  i64 devices_ = 0;
};

}  // namespace shardtool::api
