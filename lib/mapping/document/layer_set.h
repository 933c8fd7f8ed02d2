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

/// A subset of a model's layers.
struct LayerSet {
  /// The layers for which a list in config.json has one of the words `in`. All other words must be
  /// in `out`, unless that is empty. Words are compared as JSON text. If config.json lacks the
  /// list, the set is all layers l with (l + first) mod n != 0, where n is `all_but_every`, or else
  /// the set `otherwise`; contains() throws if neither is given.
  struct Listed {
    std::vector<std::string> lists;  ///< paths; the first that is present counts
    std::vector<std::string> in, out;
    std::optional<Number> all_but_every;
    std::optional<i64> first;  ///< number of the first layer in that formula; nullopt: 1
    std::shared_ptr<const LayerSet> otherwise;
  };
  /// The last `count` layers of `of`.
  struct Last {
    Number count, of;
  };
  /// The layers whose numbers are in the list at a path; none if the list is absent.
  struct Numbered {
    std::string list;
    i64 first = 0;  ///< number of the first layer in that list
  };
  /// The first n layers, where n is the length of the list at a path; none if it is absent.
  struct AsManyAs {
    std::string list;
  };
  /// The layers with number n or higher. n is the number at the path `count`, or `number` if the
  /// path is empty. With num_hidden_layers, these are the layers after those that config.json
  /// counts, which predict further tokens.
  struct From {
    std::string count;
    i64 number = 0;
  };
  std::variant<Listed, Last, Numbered, AsManyAs, From> kind;
  bool complement = false;  ///< the set is all other layers instead
};
using LayerSets = std::map<std::string, LayerSet>;

/// Returns true if the layer is in the set. Throws kUnsupported for a word that the set does not
/// list, and kConfig if config.json has neither the list nor the number that the set needs.
bool contains(const LayerSet& set, const ModelConfig& config, i64 layer);

/// Describes the layers in words: "\"layer_types\" says \"sliding_attention\"".
std::string to_string(const LayerSet& set);

/// Decodes the name of a set, {"not": set}, {"list", "in", "out", "all_but_every" or "otherwise"},
/// {"last", "of"}, {"numbers", "first"}, {"as_many_as"} or {"from"}. Throws kMappingSchema with the
/// place.
LayerSet decode_layer_set(const JsonValue& value, const LayerSets& named,
                          const std::map<std::string, Number>& numbers);

}  // namespace shardtool::mapping
