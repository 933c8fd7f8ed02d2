#include "shardtool/model/layer_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "shardtool/base/error.h"
#include "shardtool/base/text.h"
#include "shardtool/model/bind.h"
#include "shardtool/model/requirement.h"

namespace shardtool::model {
namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_listed(const LayerSet& set, const mapping::ModelConfig& config, i64 layer) {
  const std::string path = fmt::format("{}[{}]", set.list, layer);
  const std::string word = said_at(path, config);
  if (has(set.in, word)) return true;
  if (has(set.out, word)) return false;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("'{}' in {} is no kind of layer that is computed", path, config.file()))
      .note("found", quote_for_message(word, 60))
      .note("expected", fmt::format("{} or {}", fmt::join(set.in, ", "), fmt::join(set.out, ", ")));
}

/// n where the set is all layers but every n-th.
i64 period_of(const LayerSet& set, const mapping::ModelConfig& config) {
  const double period = set.all_but_every ? value_of(*set.all_but_every, config) : 0;
  if (period >= 1) return static_cast<i64>(period);
  throw Error(ErrorCode::kConfig,
              fmt::format("{} does not say which layers are of another kind", config.file()))
      .help(fmt::format("add \"{}\": {} or {} for each layer", set.list, fmt::join(set.in, ", "),
                        fmt::join(set.out, ", ")));
}

}  // namespace

bool contains(const LayerSet& set, const mapping::ModelConfig& config, i64 layer) {
  const std::string list = said_at(set.list, config);
  if (list != "null" && list != "[]") return is_listed(set, config, layer);
  return (layer + 1) % period_of(set, config) != 0;
}

}  // namespace shardtool::model
