#pragma once

#include <string>
#include <vector>

namespace shardtool::model {

/// The header of a document. A document that others only extend has no model types.
struct GraphHead {
  std::string name;
  std::string description;
  std::vector<std::string> model_types;
  std::vector<std::string> extends;
};

}  // namespace shardtool::model
