#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::mapping {

/// A model's config.json. A path is keys joined by dots: "text_config.hidden_size". [i] selects an
/// element of an array, "weight_block_size[0]". [] selects all members, "layer[].heads", which must
/// agree. [list=word] selects those for which a list beside them has that word,
/// "heads_per_layer[layer_types=full_attention]".
class ModelConfig {
 public:
  ModelConfig(std::shared_ptr<const nlohmann::json> value, std::string file);

  /// File name for messages, "config.json".
  const std::string& file() const { return file_; }
  /// Returns the value at `path`, or null if a key on the way is absent. The empty path is the
  /// whole config. Throws kConfig if selected members differ.
  const nlohmann::json* find(std::string_view path) const;
  /// Returns the positive integer at `path`, or the number of words if a list of words is there.
  /// Returns nullopt if the value is absent or null. Throws kSizeExpression for anything else.
  std::optional<i64> size(std::string_view path) const;
  /// Returns the string at `path`, or nullopt if it is absent or another type.
  std::optional<std::string> text(std::string_view path) const;
  /// The strings of "architectures", and "model_type" (empty when absent).
  std::vector<std::string> architectures() const;
  std::string model_type() const;
  /// All paths that hold a positive integer, for suggestions in errors.
  std::vector<std::string> size_paths() const;

  /// Returns a config that records the paths that are read from it and from its copies, in one
  /// record for all of them.
  ModelConfig recording() const;
  /// Returns those paths, each once, ascending; none if nothing is recorded.
  std::vector<std::string> read_paths() const;
  /// Returns a config with this file's name and another value, which records for itself if this
  /// one does.
  ModelConfig with_value(std::shared_ptr<const nlohmann::json> value) const;

 private:
  class ReadPaths;
  std::shared_ptr<const nlohmann::json> value_;  // shared because configs are copied often
  std::string file_;
  std::shared_ptr<ReadPaths> read_;  ///< null: not recorded
};

/// Parses strictly: duplicate keys, comments, a byte order mark, and anything but one object throw
/// kConfig. NaN and Infinity as Python writes them are accepted as by parse_strict_json.
ModelConfig parse_config(std::string_view text, const std::string& file);
/// Parses a file, which messages name without its folder, and places of errors with it. One without
/// quantization_config takes that of its text_config, or of hf_quant_config.json beside it. Throws
/// as parse_config does.
ModelConfig load_config(const std::string& path);

}  // namespace shardtool::mapping
