#include "lib/format/torch/pickle_tree.h"

#include <array>
#include <bit>

namespace shardtool::format::torch {

std::string_view to_string(ValueKind kind) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"None", "a bool", "an integer", "a big integer", "a float", "a text", "bytes", "a tuple",
       "a list", "a set", "a dict", "a global name", "an object", "a persistent id"});
  return kNames.at(static_cast<size_t>(kind));
}

const std::vector<PickleTree::Id>* PickleTree::list(const Node& node, ObjectSlot which) const {
  const bool is_dict = node.kind == ValueKind::kDict;
  const bool is_sequence = node.kind == ValueKind::kList || node.kind == ValueKind::kSet;
  if (which == kEntries ? is_dict : is_sequence) return &lists_[node.payload];
  if (node.kind != ValueKind::kObject) return nullptr;
  const Id number = slots_[node.payload + which];
  return number == 0 ? nullptr : &lists_[number - 1];
}

ValueKind PickleValue::kind() const {
  return tree_->node(id_).kind;
}

bool PickleValue::is_global(std::string_view module, std::string_view name) const {
  return is(ValueKind::kGlobal) && this->name() == name && this->module() == module;
}

bool PickleValue::is_text(std::string_view text) const {
  return is(ValueKind::kText) && this->text() == text;
}

bool PickleValue::boolean() const {
  return tree_->node(id_).payload != 0;
}

i64 PickleValue::integer() const {
  return static_cast<i64>(tree_->node(id_).payload);
}

double PickleValue::number() const {
  return std::bit_cast<double>(tree_->node(id_).payload);
}

std::string_view PickleValue::text() const {
  const auto& node = tree_->node(id_);
  return std::string_view(tree_->text_).substr(node.payload, node.count);
}

std::string_view PickleValue::module() const {
  return PickleValue(*tree_, tree_->slots_[tree_->node(id_).payload]).text();
}

std::string_view PickleValue::name() const {
  return PickleValue(*tree_, tree_->slots_[tree_->node(id_).payload + 1]).text();
}

size_t PickleValue::size() const {
  const auto& node = tree_->node(id_);
  if (node.kind == ValueKind::kTuple) return node.count;
  const auto* list = tree_->list(node, PickleTree::kElements);
  return list == nullptr ? 0 : list->size();
}

PickleValue PickleValue::operator[](size_t i) const {
  const auto& node = tree_->node(id_);
  if (node.kind == ValueKind::kTuple) return {*tree_, tree_->slots_[node.payload + i]};
  return {*tree_, (*tree_->list(node, PickleTree::kElements))[i]};
}

size_t PickleValue::entries() const {
  const auto* list = tree_->list(tree_->node(id_), PickleTree::kEntries);
  return list == nullptr ? 0 : list->size() / 2;
}

PickleValue PickleValue::key(size_t i) const {
  return {*tree_, (*tree_->list(tree_->node(id_), PickleTree::kEntries))[2 * i]};
}

PickleValue PickleValue::value(size_t i) const {
  return {*tree_, (*tree_->list(tree_->node(id_), PickleTree::kEntries))[2 * i + 1]};
}

std::optional<PickleValue> PickleValue::find(std::string_view key) const {
  constexpr size_t kFewEntries = 64;
  const auto scan = [&] {
    for (size_t i = entries(); i-- > 0;) {
      if (this->key(i).is_text(key)) return value(i).id();
    }
    return PickleTree::kNoValue;
  };
  const auto found = [&] {
    if (entries() <= kFewEntries) return scan();
    const auto [known, is_new] = tree_->found_.try_emplace({id_, std::string(key)});
    if (is_new) known->second = scan();
    return known->second;
  }();
  if (found == PickleTree::kNoValue) return std::nullopt;
  return PickleValue(*tree_, found);
}

PickleValue PickleValue::callable() const {
  return {*tree_, tree_->slots_[tree_->node(id_).payload + PickleTree::kCallable]};
}

PickleValue PickleValue::arguments() const {
  return {*tree_, tree_->slots_[tree_->node(id_).payload + PickleTree::kArguments]};
}

std::optional<PickleValue> PickleValue::state() const {
  const auto state = tree_->slots_[tree_->node(id_).payload + PickleTree::kState];
  if (state == PickleTree::kNoValue) return std::nullopt;
  return PickleValue(*tree_, state);
}

PickleValue PickleValue::persistent_id() const {
  return {*tree_, static_cast<std::uint32_t>(tree_->node(id_).payload)};
}

}  // namespace shardtool::format::torch
