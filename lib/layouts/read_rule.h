#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/index/axis_map.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/document/glob.h"

namespace shardtool::layouts {

/// Places of the checkpoint's tensors in a tensor of another tool, which holds several of them.
///
///     name   [stacked, ..., rows, ...]     of: one tensor per part and per index of the stacked
///     axes rows   |= group 0: part 0, part 1 =|= group 1: part 0, part 1 =| ...
struct ReadRule {
  mapping::Glob name;
  std::vector<mapping::Glob> of;     ///< the wildcards of `name` and the numbers in `stacked`
  std::vector<std::string> stacked;  ///< numbers that the leading axes count, outermost first
  std::vector<std::string> shares;   ///< per part, the config's value to which its rows are in
                                     ///< proportion; empty: equal parts
  std::string groups;                ///< config's number of groups of rows; empty: one group
  std::string rows;  ///< config's number of rows; the others are padding; empty: all
  /// Config's number of heads; in the rows of each, those of the two halves take turns. Empty:
  /// they do not. Only of a rule with one part.
  std::string interleaved;
};

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

/// Decodes an element of "read" in a layout. Its text is part of the program.
ReadRule decode_read_rule(const nlohmann::json& json);

/// A tensor's place in a stored one.
struct PartPlace {
  std::string name;     ///< of the tensor in the checkpoint
  index::AxisMap rows;  ///< from the rows of the stored tensor to its own
};

/// The parts of a stored tensor with so many rows (0 for a scalar, which is one part), at one index
/// of the stacked axes. `wildcards` are the texts of the wildcards of its name. Throws kConfig if
/// the config lacks a number, and kShapeMismatch for rows that do not divide into the parts or
/// heads.
std::vector<PartPlace> parts_at(const ReadRule& rule, const std::vector<std::string>& wildcards,
                                const std::vector<i64>& stacked_index, i64 rows,
                                const mapping::ModelConfig* config);

}  // namespace shardtool::layouts
