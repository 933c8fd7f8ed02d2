#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/family/family_file.h"

namespace shardtool::family {

/// The rows of "tensors" of a family and of those that it extends, to look up the dims of a weight
/// that an op names.
class TensorRows {
 public:
  explicit TensorRows(std::string_view family);

  /// The "dims" of the first row that covers every name of `weight`, in the spelling of ops
  /// ("layer/mlp.{gate,up}.weight?"). The family's own rows come first, then those of the nearest
  /// extended family. nullptr: no row covers it, or the row has no dims.
  const Json* dims(std::string_view weight) const;

 private:
  struct Row {
    const Json* dims = nullptr;
    std::vector<std::string> names;  ///< full names without alternatives
  };

  void add(std::string_view family);

  Prefixes prefixes_;
  std::vector<Row> rows_;
};

}  // namespace shardtool::family
