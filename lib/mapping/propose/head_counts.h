#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/mapping/document/config.h"

namespace shardtool::mapping {

/// A number that config.json has, or that only follows from the tensors.
struct ConfigNumber {
  i64 value = 0;
  std::string path;  ///< in config.json; empty: not found there
};

/// Heads of one attention layer.
struct HeadCounts {
  ConfigNumber heads;
  ConfigNumber kv_heads;
  ConfigNumber head_dim;
  bool is_stated = false;  ///< config.json says how many heads there are
};

/// Widths of an attention layer, in elements.
struct AttentionWidths {
  i64 query = 0;     ///< input of the output projection
  i64 key = 0;       ///< output of the key projection; 0: keys have as many heads as queries
  i64 head_dim = 0;  ///< extent of a norm over single heads; 0: there is none
};

/// Finds numbers of heads in config.json that fit the widths, under any of the names that configs
/// use, or infers them from `widths.head_dim`. `path` is the tensors' name: of several parts of
/// config.json ("vision_config", "text_config") the one that it mentions wins. `config` may be
/// null. Returns nullopt if no number fits.
std::optional<HeadCounts> find_head_counts(const ModelConfig* config, const std::string& path,
                                           const AttentionWidths& widths);

/// Returns the width of the hidden states that config.json gives the language model, under any of
/// the names that configs use. `config` may be null.
std::optional<i64> find_hidden_width(const ModelConfig* config);

/// Returns true if config.json gives this number of heads to another kind of layer, under a name
/// such as "linear_num_key_heads". `config` may be null.
bool states_other_heads(const ModelConfig* config, i64 heads);

/// Returns the size of a vocabulary in config.json that fits a tensor of `rows` rows, which may be
/// padded; of several ("type_vocab_size") the nearest one. Returns nullopt if none does.
std::optional<ConfigNumber> find_vocabulary(const ModelConfig* config, i64 rows);

}  // namespace shardtool::mapping
