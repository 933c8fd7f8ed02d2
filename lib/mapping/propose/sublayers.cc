#include "lib/mapping/propose/sublayers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

namespace shardtool::mapping {
namespace {

using Members = std::vector<const TensorKind*>;
/// Weights by block and group.
using Groups = std::map<std::pair<std::string, std::string>, Members>;

Groups groups_of(const std::map<std::string, TensorKind>& kinds) {
  Groups groups;
  for (const auto& [form, kind] : kinds) {
    if (!kind.is_bias) groups[{kind.block, kind.group}].push_back(&kind);
  }
  return groups;
}

const TensorKind* with_role(const Members& members, Role role) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [role](const TensorKind* kind) { return kind->role == role; });
  return found == members.end() ? nullptr : *found;
}

Members with_roles(const Members& members, std::initializer_list<Role> roles) {
  Members found;
  for (const TensorKind* kind : members) {
    if (std::find(roles.begin(), roles.end(), kind->role) != roles.end()) found.push_back(kind);
  }
  return found;
}

/// Returns the first part of a group's path: "attention" of "attention.self".
std::string_view stem(std::string_view group) {
  return group.substr(0, group.find('.'));
}

bool has(const Members& members, Role role) {
  return with_role(members, role) != nullptr;
}

bool is_separate_attention(const Members& members) {
  const bool separate =
      has(members, Role::kQuery) && has(members, Role::kKey) && has(members, Role::kValue);
  const bool latent = has(members, Role::kLatentKeyValue) &&
                      (has(members, Role::kQuery) || has(members, Role::kLatentQuery));
  return separate || latent || (has(members, Role::kQuery) && has(members, Role::kKeyValue));
}

bool is_attention(const Members& members) {
  return is_separate_attention(members) || has(members, Role::kQueryKeyValue);
}

/// Finds the output of a sublayer: in its own group, else in a group that `is_near`.
template <class IsNear>
const TensorKind* output_of(const Groups& groups, const Groups::value_type& own, Role role,
                            IsNear is_near) {
  if (const TensorKind* found = with_role(own.second, role)) return found;
  if (const TensorKind* found = with_role(own.second, Role::kOutOrDown)) return found;
  for (const auto& [place, members] : groups) {
    if (place.first != own.first.first || place == own.first || !is_near(place.second)) continue;
    if (const TensorKind* found = with_role(members, role)) return found;
  }
  return nullptr;
}

/// True for a tensor whose name tells no use; norms, biases and scales of quantised values have
/// names that do.
bool has_unknown_use(const TensorKind& kind) {
  if (kind.role != Role::kUnknown) return false;
  if (kind.shape().size() >= 2) return true;
  constexpr auto kUses = std::to_array<std::string_view>({"norm", "ln", "bias", "scale"});
  const std::string& word = kind.path.back();
  return std::ranges::none_of(
      kUses, [&](std::string_view use) { return word.find(use) != std::string::npos; });
}

/// Completes an attention layer with its output; nullopt if there is none.
std::optional<AttentionKinds> attention_of(const Groups& groups, const Groups::value_type& own,
                                           Members in, Role out) {
  AttentionKinds found;
  found.in = std::move(in);
  found.out = with_role(own.second, out);
  if (found.out == nullptr) {
    found.out = output_of(groups, own, Role::kOut, [&](std::string_view group) {
      return stem(group) == stem(own.first.second);
    });
  }
  if (found.out == nullptr) return std::nullopt;
  std::ranges::copy_if(own.second, std::back_inserter(found.others),
                       [](const TensorKind* kind) { return has_unknown_use(*kind); });
  return found;
}

/// Finds the attention layers of a group: one with separate and one with fused inputs, where layers
/// of two kinds have names of one form.
std::vector<AttentionKinds> attentions_of(const Groups& groups, const Groups::value_type& own) {
  std::vector<AttentionKinds> found;
  const Members fused = with_roles(own.second, {Role::kQueryKeyValue});
  Members separate;
  if (is_separate_attention(own.second)) {
    separate = with_roles(own.second, {Role::kQuery, Role::kKey, Role::kValue, Role::kKeyValue,
                                       Role::kLatentQuery, Role::kLatentKeyValue});
  }
  const Role out_of_fused = separate.empty() ? Role::kOut : Role::kOutOrDown;
  if (!separate.empty()) {
    if (auto one = attention_of(groups, own, separate, Role::kOut)) found.push_back(*one);
  }
  if (!fused.empty()) {
    if (auto one = attention_of(groups, own, fused, out_of_fused)) found.push_back(*one);
  }
  return found;
}

/// Adds "gate" to the inputs if it has the shape of the others, so that it is no router.
void add_gate(const Members& members, MlpKinds& mlp) {
  for (const TensorKind* kind : with_roles(members, {Role::kGateOrRoute})) {
    if (!mlp.in.empty() && kind->shapes == mlp.in.front()->shapes) mlp.in.push_back(kind);
  }
}

std::optional<MlpKinds> mlp_of(const Groups& groups, const Groups::value_type& own) {
  MlpKinds found;
  found.in = with_roles(own.second, {Role::kUp, Role::kGateUp});
  if (found.in.empty()) return std::nullopt;
  add_gate(own.second, found);
  // Outputs beside attention are the attention's own.
  if (is_attention(own.second)) {
    found.out = with_role(own.second, Role::kDown);
  } else {
    found.out = output_of(groups, own, Role::kDown, [](std::string_view) { return true; });
  }
  if (found.out == nullptr) return std::nullopt;
  return found;
}

}  // namespace

const TensorKind* AttentionKinds::find(Role role) const {
  return with_role(in, role);
}

Sublayers find_sublayers(const std::map<std::string, TensorKind>& kinds) {
  Sublayers found;
  const Groups groups = groups_of(kinds);
  for (const Groups::value_type& group : groups) {
    for (AttentionKinds& attention : attentions_of(groups, group))
      found.attentions.push_back(std::move(attention));
    if (auto mlp = mlp_of(groups, group)) found.mlps.push_back(*mlp);
  }
  return found;
}

std::vector<i64> norm_extents(const std::map<std::string, TensorKind>& kinds,
                              const TensorKind& kind) {
  std::vector<i64> extents;
  for (const auto& [form, other] : kinds) {
    const bool is_norm = other.shape().size() == 1 && other.role == Role::kUnknown;
    const bool is_around = other.block == kind.block || kind.block.starts_with(other.block + ".");
    const bool is_direct = other.group.find('.') == other.group.npos;
    if (is_norm && is_around && is_direct && !other.block.empty())
      extents.push_back(other.shape()[0]);
  }
  return extents;
}

const TensorKind* bias_of(const std::map<std::string, TensorKind>& kinds,
                          const TensorKind& weight) {
  for (const auto& [form, kind] : kinds) {
    if (kind.is_bias && kind.path == weight.path) return &kind;
  }
  return nullptr;
}

}  // namespace shardtool::mapping
