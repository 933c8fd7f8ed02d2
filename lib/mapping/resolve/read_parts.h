#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/index/axis_map.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/document/glob_matcher.h"
#include "lib/mapping/mapping.h"

namespace shardtool::mapping {

/// A tensor's place in a stored one.
struct PartPlace {
  std::string name;      ///< of the tensor in the model
  index::AxisMap along;  ///< from the stored tensor's axis with the parts to its own
};

/// True if a document of the mapping has rules of "read".
bool has_read_rules(const Mapping& mapping);

/// The rules of "read" of a mapping, nearest first. The mapping must outlive it.
class ReadRules {
 public:
  explicit ReadRules(const Mapping& mapping);

  /// All rules, in order.
  std::vector<const ReadRule*> all() const;

  /// A rule, and the texts of the wildcards of its name.
  struct Match {
    const ReadRule* rule = nullptr;
    std::vector<std::string> wildcards;
  };
  /// Returns the first rule that takes a stored tensor with so many axes.
  std::optional<Match> find(std::string_view stored, size_t axes) const;

 private:
  struct Entry {
    const ReadRule* rule = nullptr;
    GlobMatcher name;
  };

  std::vector<Entry> rules_;
};

/// The parts of a stored tensor, at one index of the stacked axes, whose axis with the parts has
/// this extent (0 for a scalar, which is one part). Throws kSizeExpression and kConfig for sizes
/// that config.json lacks, kShapeMismatch for an extent that does not divide into the parts or
/// heads, and kLimit for more than 2^24 runs of indices.
std::vector<PartPlace> parts_at(const ReadRules::Match& match,
                                const std::vector<i64>& stacked_index, i64 extent,
                                const ModelConfig* config);

}  // namespace shardtool::mapping
