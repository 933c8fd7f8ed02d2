#include "lib/engine/diagnosis/other_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <vector>

#include "lib/base/text.h"
#include "lib/engine/weights/block_grid.h"
#include "lib/engine/weights/row_chunks.h"
#include "lib/mapping/document/name_form.h"

namespace shardtool::engine {
namespace {

std::string joined(std::span<const std::string_view> words) {
  return fmt::format("{}", fmt::join(words, "."));
}

/// Name of a layer's tensor in another layer; empty if the name has no layer number.
std::string name_in(const std::string& name, const model::Layer& layer, i64 other) {
  auto words = split_at(name, ".");
  const auto own = std::find(words.begin(), words.end(), std::to_string(layer.number));
  if (own == words.end()) return {};
  const std::string number = std::to_string(other);
  *own = number;
  return joined(words);
}

/// Numbers of the other layers; empty for a layer without a number.
std::vector<i64> other_numbers(const model::Layer& layer, const model::Model& model) {
  std::vector<i64> numbers;
  for (const model::Layer& other : model.layers) {
    const bool is_other = other.number >= 0 && other.number != layer.number;
    if (layer.number >= 0 && is_other) numbers.push_back(other.number);
  }
  return numbers;
}

/// Finds a tensor by name if its shape and dtype equal those of `tensor`.
std::optional<size_t> alike(const Side& whole, const std::string& name, size_t tensor) {
  const auto found = whole.by_name.find(name);
  if (found == whole.by_name.end() || found->second == tensor) return std::nullopt;
  const TensorSpec& own = whole.tensors[tensor];
  const TensorSpec& spec = whole.tensors[found->second];
  if (spec.shape != own.shape || spec.dtype != own.dtype) return std::nullopt;
  return found->second;
}

/// Difference between two tensor names: the text between their common prefix and suffix, extended
/// to whole words between dots.
struct NamePair {
  std::string own, other;
  std::string before;  ///< preceding word, or empty
};

NamePair differing_words(const std::string& own, const std::string& other) {
  const auto a = split_at(own, ".");
  const auto b = split_at(other, ".");
  const size_t least = std::min(a.size(), b.size());
  size_t first = 0;
  while (first + 1 < least && a[first] == b[first]) ++first;
  size_t last = 0;
  while (last + first + 1 < least && a[a.size() - 1 - last] == b[b.size() - 1 - last]) ++last;
  return {joined(std::span(a).subspan(first, a.size() - last - first)),
          joined(std::span(b).subspan(first, b.size() - last - first)),
          std::string(first > 0 ? a[first - 1] : "")};
}

/// True if two names differ in one word that is not a number, such as encoder and decoder.
bool differ_in_one_word(const std::string& one, const std::string& other) {
  if (std::ranges::count(one, '.') != std::ranges::count(other, '.')) return false;
  const NamePair pair = differing_words(one, other);
  return pair.own.find('.') == std::string::npos && !mapping::is_number(pair.own);
}

/// Tensors of the whole model that could have been stored there by mistake, most likely first.
std::vector<size_t> candidates(const Side& whole, const Side& shards, const StoredPart& part,
                               const model::Layer& layer) {
  std::vector<size_t> found;
  const auto add = [&](const std::string& name) {
    if (const auto other = alike(whole, name, part.whole_tensor)) found.push_back(*other);
  };
  for (const ops::BoundOp& op : layer.ops) {
    for (const ops::BoundWeight& weight : op.weights) {
      for (const size_t tensor : weight) add(shards.tensors[tensor].name);
    }
  }
  const std::string& own = whole.tensors[part.whole_tensor].name;
  for (const i64 other : other_numbers(layer, *whole.model)) add(name_in(own, layer, other));
  for (const TensorSpec& tensor : whole.tensors) {
    if (differ_in_one_word(own, tensor.name)) add(tensor.name);
  }
  return found;
}

/// True if matrix `outer` (local) of the part equals that of another tensor.
bool holds(const Side& whole, const Side& shards, const StoredPart& part, i64 outer,
           size_t tensor) {
  auto matrix = expected_matrix(part, outer);
  if (!matrix) return true;  // padding
  matrix->tensor = tensor;
  for (const auto [begin, end] : row_chunks(part.rows.local_size(), part.whole_row_bytes())) {
    if (stored_rows(shards, part, outer, begin, end) != whole_rows(whole, *matrix, begin, end)) {
      return false;
    }
  }
  return true;
}

/// Tensors that a device's file has for a layer.
std::vector<size_t> tensors_of(const Side& shards, const model::Layer& layer) {
  std::vector<size_t> tensors;
  for (const ops::BoundOp& op : layer.ops) {
    const auto behind = stored_behind(shards, op);
    tensors.insert(tensors.end(), behind.begin(), behind.end());
  }
  return tensors;
}

/// True if a device's tensors of a layer are those of another layer.
bool holds_layer(const Side& whole, const Side& shards, const model::Layer& layer, i64 rank,
                 i64 other) {
  bool any = false;
  for (const size_t tensor : tensors_of(shards, layer)) {
    const auto part = stored_part(whole, shards, tensor, rank);
    if (!part) continue;
    const auto there =
        alike(whole, name_in(shards.tensors[tensor].name, layer, other), part->whole_tensor);
    if (!there) return false;
    const i64 outers = part->has_outer ? part->outer.local_size() : 1;
    for (i64 outer = 0; outer < outers; ++outer) {
      if (!holds(whole, shards, *part, outer, *there)) return false;
    }
    any = true;
  }
  return any;
}

std::string text_of(const NamePair& names) {
  if (!mapping::is_number(names.own) || !mapping::is_number(names.other)) {
    return fmt::format("{} holds {}", names.own, names.other);
  }
  std::string what = names.before == "experts" ? "expert" : "layer";
  return fmt::format("holds {} {}'s instead of {} {}'s", what, names.other, what, names.own);
}

}  // namespace

std::optional<i64> other_layer(const Side& whole, const Side& shards, const model::Layer& layer,
                               i64 rank) {
  for (const i64 other : other_numbers(layer, *whole.model)) {
    if (holds_layer(whole, shards, layer, rank, other)) return other;
  }
  return std::nullopt;
}

std::optional<std::string> describe_other_tensor(const Side& whole, const Side& shards,
                                                 const PartDifference& d,
                                                 const TensorPlace& place) {
  for (const size_t tensor : candidates(whole, shards, d.part, *place.layer)) {
    if (!holds(whole, shards, d.part, d.outer, tensor)) continue;
    return text_of(
        differing_words(whole.tensors[d.part.whole_tensor].name, whole.tensors[tensor].name));
  }
  return std::nullopt;
}

}  // namespace shardtool::engine
