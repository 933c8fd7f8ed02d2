#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lib/mapping/document/glob.h"

namespace shardtool::layouts {

/// Way in which the ranks of a tensor-parallel group cut a tensor: into equal parts along one axis.
struct RankCut {
  mapping::Glob name;
  size_t axis = 0;
  bool is_in_halves = false;  ///< a rank has its part of the first half, then of the second one
  std::string groups;         ///< config's number of groups of rows, which are not cut; or empty
};

/// Form of checkpoints with a file per rank that holds the parameters of its module.
struct RankForm {
  std::vector<RankCut> cuts;         ///< other tensors are whole on every rank
  std::vector<std::string> layers;   ///< beginnings of names before a number that each stage counts
                                     ///< from 0
  std::vector<std::string> experts;  ///< parts of names before a number that each rank of ep counts
                                     ///< from 0; other tensors are the same on all ranks of ep
  /// Tensors that only the last stage has, and each rank of ep without stages.
  std::vector<std::string> last;
};

/// Decodes "ranks" of a layout. Its text is part of the program.
RankForm decode_rank_form(const nlohmann::json& json);

}  // namespace shardtool::layouts
