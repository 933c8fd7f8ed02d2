#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transform.h"
#include "lib/layouts/engine_layout.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/propose/doubtful_cuts.h"
#include "lib/mapping/resolve/output_tensors.h"
#include "lib/mapping/resolve/resolution.h"

namespace shardtool::api {

/// A mapping with its resolution for a checkpoint.
struct AppliedMapping {
  mapping::Mapping mapping;
  mapping::Resolution resolution;
  std::vector<TensorSpec> specs;
  std::string axes = {};  ///< entry of the mapping's "layouts", or empty
  bool allows_empty_shards = false;
  std::string config = {};           ///< path of the chosen config.json; empty: the source's
  std::string layout{kPlainLayout};  ///< label of an engine's layout, or plain
  std::optional<layouts::FileNames> engine_files = {};  ///< of the layout; absent: plain names
  layouts::StoredForm form = {};
  /// Tensors as the files hold them; null: every tensor by itself.
  std::shared_ptr<const std::vector<mapping::OutputTensor>> output = {};
  std::vector<mapping::DoubtfulCut> doubts = {};  ///< cuts that are probably wrong
  /// Features of the output that no engine has loaded yet (layouts::experimental_reasons).
  std::vector<std::string> experimental = {};
  std::vector<mapping::LeftOut> left_out = {};  ///< from the output, by index into `specs`

  /// True for a tensor of `left_out`.
  bool leaves_out(size_t tensor) const {
    return std::ranges::find(left_out, tensor, &mapping::LeftOut::tensor) != left_out.end();
  }
};

/// Combines choose_mapping and resolve; `report` is passed to resolve.
AppliedMapping apply_mapping(const MappingChoice& choice, const LogicalCheckpoint& source,
                             const std::function<void(Error)>& report = nullptr);

/// Drops the tensors that the layout leaves out of its files, as a plan of these files has them.
AppliedMapping without_left_out(AppliedMapping applied);

}  // namespace shardtool::api
