#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lib/mapping/document/config.h"
#include "lib/mapping/document/config_number.h"
#include "lib/mapping/document/json_value.h"

namespace shardtool::mapping {

/// Some of a model's layers.
struct LayerSet {
  /// Those where the list in config.json has one of `in`; the others have one of `out` there, as
  /// JSON text; without `out` any other word. Of a config without that list all but every n-th,
  /// layers l with (l + first) mod n != 0, or those of another set; without either it is an error.
  struct Listed {
    std::vector<std::string> lists;  ///< paths, of which the first that is there counts
    std::vector<std::string> in, out;
    std::optional<Number> all_but_every;
    std::optional<i64> first;  ///< what the first layer is called then; nothing: 1
    std::shared_ptr<const LayerSet> otherwise;
  };
  /// So many at the end; of how many.
  struct Last {
    Number count, of;
  };
  /// Those whose numbers the list at a path has; none where it is absent.
  struct Numbered {
    std::string list;
    i64 first = 0;  ///< what the list calls the first layer
  };
  /// As many from the first on as the list at a path has entries; none where it is absent.
  struct AsManyAs {
    std::string list;
  };
  std::variant<Listed, Last, Numbered, AsManyAs> kind;
  bool complement = false;  ///< all layers that this says nothing of
};
using LayerSets = std::map<std::string, LayerSet>;

/// Whether the layer is one of the set. Throws kUnsupported for a word that the set does not know,
/// kConfig where the config says neither by a list nor by a number which layers those are.
bool contains(const LayerSet& set, const ModelConfig& config, i64 layer);

/// The layers in words: "\"layer_types\" says \"sliding_attention\"".
std::string to_string(const LayerSet& set);

/// The name of a set, {"not": set}, {"list", "in", "out", "all_but_every" or "otherwise"},
/// {"last", "of"}, {"numbers", "first"} or {"as_many_as"}.
/// Throws kMappingSchema with the place.
LayerSet decode_layer_set(const JsonValue& value, const LayerSets& named,
                          const std::map<std::string, Number>& numbers);

}  // namespace shardtool::mapping
