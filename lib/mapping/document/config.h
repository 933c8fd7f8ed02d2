#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::mapping {

/// A model's config.json. A path is keys joined by dots, with [i] for array elements and [] for all
/// members, which must agree, or [list=word] for those where a list beside them has that word:
/// "text_config.hidden_size", "weight_block_size[0]", "layer[].heads",
/// "heads_per_layer[layer_types=full_attention]".
class ModelConfig {
 public:
  ModelConfig(std::shared_ptr<const nlohmann::json> value, std::string file);

  /// Its name for messages, "config.json".
  const std::string& file() const { return file_; }
  /// The value at `path`, or null when a key on the way is absent; kConfig where members differ. An
  /// empty path is all of it.
  const nlohmann::json* find(std::string_view path) const;
  /// The positive integer at `path`, or how many words are in a list of them; nothing when it is
  /// absent or null. Throws kSizeExpression when it is anything else.
  std::optional<i64> size(std::string_view path) const;
  /// The string at `path`; nothing when it is absent or no string.
  std::optional<std::string> text(std::string_view path) const;
  /// The strings of "architectures", and "model_type" (empty when absent).
  std::vector<std::string> architectures() const;
  std::string model_type() const;
  /// Every path that holds a positive integer, for near misses.
  std::vector<std::string> size_paths() const;

 private:
  std::shared_ptr<const nlohmann::json>
      value_;  // shared: a config is a value that many copies read
  std::string file_;
};

/// Strict: duplicate keys, comments, a byte order mark and anything but one object throw kConfig.
/// Python's words for numbers that JSON has none for are taken as parse_strict_json takes them.
ModelConfig parse_config(std::string_view text, const std::string& file);
/// The same from a file, named without its folder. Throws what io::read_text throws, too.
ModelConfig load_config(const std::string& path);

}  // namespace shardtool::mapping
