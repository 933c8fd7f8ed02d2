#include "shardtool/engine/other_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace shardtool::engine {
namespace {

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words;
  for (size_t begin = 0;;) {
    const size_t end = name.find('.', begin);
    words.push_back(name.substr(begin, end - begin));
    if (end == std::string::npos) return words;
    begin = end + 1;
  }
}

bool is_number(const std::string& word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string joined(const std::vector<std::string>& words, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) text += (i == begin ? "" : ".") + words[i];
  return text;
}

/// The names that the tensor has in other layers.
std::vector<std::string> names_elsewhere(const std::string& name, const model::Layer& layer,
                                         const model::Model& model) {
  std::vector<std::string> names;
  auto words = words_of(name);
  const auto own = std::find(words.begin(), words.end(), std::to_string(layer.number));
  if (layer.number < 0 || own == words.end()) return names;
  for (const model::Layer& other : model.layers) {
    if (other.number < 0 || other.number == layer.number) continue;
    *own = std::to_string(other.number);
    names.push_back(joined(words, 0, words.size()));
  }
  return names;
}

/// Tensors of the whole model that could stand there by mistake, the nearest first.
std::vector<size_t> candidates(const Side& whole, const Side& shards, const StoredPart& part,
                               const model::Layer& layer) {
  std::vector<size_t> found;
  const TensorSpec& own = whole.tensors[part.whole_tensor];
  const auto add = [&](const std::string& name) {
    const auto other = whole.by_name.find(name);
    if (other == whole.by_name.end() || other->second == part.whole_tensor) return;
    const TensorSpec& spec = whole.tensors[other->second];
    if (spec.shape == own.shape && spec.dtype == own.dtype) found.push_back(other->second);
  };
  for (const model::BoundOp& op : layer.ops) {
    for (const model::BoundWeight& weight : op.weights) {
      for (const size_t tensor : weight) add(shards.tensors[tensor].name);
    }
  }
  for (const std::string& name : names_elsewhere(own.name, layer, *whole.model)) add(name);
  return found;
}

bool holds(const Side& whole, const Side& shards, const PartDifference& d, size_t tensor) {
  auto matrix = *expected_matrix(d.part, d.outer);
  matrix.tensor = tensor;
  const i64 rows = d.part.rows.local_size();
  const i64 at_once = d.part.rows_at_once(d.part.columns.global_size());
  for (i64 begin = 0; begin < rows; begin += at_once) {
    const i64 end = std::min(rows, begin + at_once);
    if (stored_rows(shards, d.part, d.outer, begin, end) != whole_rows(whole, matrix, begin, end)) {
      return false;
    }
  }
  return true;
}

std::string text_of(const NamePair& names) {
  if (!is_number(names.own) || !is_number(names.other)) {
    return fmt::format("{} holds {}", names.own, names.other);
  }
  std::string what = names.before == "experts" ? "expert" : "layer";
  return fmt::format("holds {} {}'s instead of {} {}'s", what, names.other, what, names.own);
}

}  // namespace

NamePair differing_words(const std::string& own, const std::string& other) {
  const auto a = words_of(own);
  const auto b = words_of(other);
  const size_t least = std::min(a.size(), b.size());
  size_t first = 0;
  while (first + 1 < least && a[first] == b[first]) ++first;
  size_t last = 0;
  while (last + first + 1 < least && a[a.size() - 1 - last] == b[b.size() - 1 - last]) ++last;
  return {joined(a, first, a.size() - last), joined(b, first, b.size() - last),
          first > 0 ? a[first - 1] : ""};
}

std::optional<std::string> describe_other_tensor(const Side& whole, const Side& shards,
                                                 const PartDifference& d,
                                                 const TensorPlace& place) {
  for (const size_t tensor : candidates(whole, shards, d.part, *place.layer)) {
    if (!holds(whole, shards, d, tensor)) continue;
    return text_of(
        differing_words(whole.tensors[d.part.whole_tensor].name, whole.tensors[tensor].name));
  }
  return std::nullopt;
}

}  // namespace shardtool::engine
