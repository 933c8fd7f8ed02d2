#include "lib/mapping/propose/kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "lib/base/text.h"
#include "lib/mapping/document/name_form.h"

namespace shardtool::mapping {
namespace {

struct Word {
  std::string_view word;
  Role role;
};

/// Last words of tensors' names, without ".weight" and in lower case.
constexpr auto kWords = std::to_array<Word>({
    {"embed_tokens", Role::kEmbedding},
    {"wte", Role::kEmbedding},
    {"word_embeddings", Role::kEmbedding},
    {"tok_embeddings", Role::kEmbedding},
    {"token_embd", Role::kEmbedding},
    {"token_embedding", Role::kEmbedding},
    {"embedding", Role::kEmbedding},
    {"embeddings", Role::kEmbedding},
    {"embed", Role::kEmbedding},
    {"embed_in", Role::kEmbedding},
    {"embed_out", Role::kEmbedding},
    {"emb", Role::kEmbedding},
    {"shared", Role::kEmbedding},
    {"lm_head", Role::kEmbedding},
    {"head", Role::kEmbedding},
    {"output", Role::kEmbedding},
    {"unembed", Role::kEmbedding},
    {"q_proj", Role::kQuery},
    {"q", Role::kQuery},
    {"wq", Role::kQuery},
    {"query", Role::kQuery},
    {"query_proj", Role::kQuery},
    {"q_lin", Role::kQuery},
    {"to_q", Role::kQuery},
    {"attn_q", Role::kQuery},
    {"k_proj", Role::kKey},
    {"k", Role::kKey},
    {"wk", Role::kKey},
    {"key", Role::kKey},
    {"key_proj", Role::kKey},
    {"k_lin", Role::kKey},
    {"to_k", Role::kKey},
    {"attn_k", Role::kKey},
    {"v_proj", Role::kValue},
    {"v", Role::kValue},
    {"wv", Role::kValue},
    {"value", Role::kValue},
    {"value_proj", Role::kValue},
    {"v_lin", Role::kValue},
    {"to_v", Role::kValue},
    {"attn_v", Role::kValue},
    {"kv_proj", Role::kKeyValue},
    {"kv", Role::kKeyValue},
    {"wkv", Role::kKeyValue},
    {"key_value", Role::kKeyValue},
    {"to_kv", Role::kKeyValue},
    {"qkv", Role::kQueryKeyValue},
    {"qkv_proj", Role::kQueryKeyValue},
    {"wqkv", Role::kQueryKeyValue},
    {"to_qkv", Role::kQueryKeyValue},
    {"attn_qkv", Role::kQueryKeyValue},
    {"query_key_value", Role::kQueryKeyValue},
    {"c_attn", Role::kQueryKeyValue},
    {"q_b_proj", Role::kLatentQuery},
    {"wq_b", Role::kLatentQuery},
    {"kv_b_proj", Role::kLatentKeyValue},
    {"wkv_b", Role::kLatentKeyValue},
    {"up_proj", Role::kUp},
    {"gate_proj", Role::kUp},
    {"w1", Role::kUp},
    {"w3", Role::kUp},
    {"v1", Role::kUp},
    {"fc1", Role::kUp},
    {"fc_in", Role::kUp},
    {"c_fc", Role::kUp},
    {"dense_h_to_4h", Role::kUp},
    {"wi", Role::kUp},
    {"wi_0", Role::kUp},
    {"wi_1", Role::kUp},
    {"lin1", Role::kUp},
    {"linear1", Role::kUp},
    {"linear_fc1", Role::kUp},
    {"up", Role::kUp},
    {"ffn_up", Role::kUp},
    {"ffn_gate", Role::kUp},
    {"gate_up_proj", Role::kGateUp},
    {"gate_up", Role::kGateUp},
    {"up_gate", Role::kGateUp},
    {"gate_and_up", Role::kGateUp},
    {"w13", Role::kGateUp},
    {"w1_w3", Role::kGateUp},
    {"w12", Role::kGateUp},
    {"ffn_gate_up", Role::kGateUp},
    {"input_linear", Role::kGateUp},
    {"o_proj", Role::kOut},
    {"o", Role::kOut},
    {"out_lin", Role::kOut},
    {"to_out", Role::kOut},
    {"attn_output", Role::kOut},
    {"down_proj", Role::kDown},
    {"w2", Role::kDown},
    {"fc2", Role::kDown},
    {"fc_out", Role::kDown},
    {"dense_4h_to_h", Role::kDown},
    {"lin2", Role::kDown},
    {"linear2", Role::kDown},
    {"linear_fc2", Role::kDown},
    {"output_linear", Role::kDown},
    {"down", Role::kDown},
    {"ffn_down", Role::kDown},
    {"wo", Role::kOutOrDown},
    {"out_proj", Role::kOutOrDown},
    {"c_proj", Role::kOutOrDown},
    {"proj", Role::kOutOrDown},
    {"gate", Role::kGateOrRoute},
    {"linear_gate", Role::kGateOrRoute},
});

std::string lower(std::string_view text) {
  std::string copy(text);
  std::transform(copy.begin(), copy.end(), copy.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return copy;
}

/// Removes "weight" or "bias" from the end, as a part of its own or after "_". Returns true for a
/// bias.
bool take_suffix(std::vector<std::string>& path) {
  const std::string last = lower(path.back());
  if (path.size() > 1 && (last == "weight" || last == "bias")) {
    path.pop_back();
    return last == "bias";
  }
  for (const std::string_view suffix : {"_weight", "_bias"}) {
    if (!last.ends_with(suffix) || last.size() == suffix.size()) continue;
    path.back().resize(last.size() - suffix.size());
    return suffix == "_bias";
  }
  return false;
}

bool name_mentions(std::string_view text, std::string_view word) {
  return lower(text).find(word) != std::string::npos;
}

/// The role of names whose last word has a meaning only with the words before it.
Role role_in_place(const TensorKind& kind, const std::string& word) {
  const bool attention = name_mentions(kind.group, "att");
  if (word == "in_proj" && attention) return Role::kQueryKeyValue;
  if (word != "dense") return Role::kUnknown;
  if (attention) return Role::kOut;
  if (kind.group.starts_with("intermediate")) return Role::kUp;
  if (kind.group.starts_with("output")) return Role::kDown;
  return Role::kUnknown;
}

Role role_of(const TensorKind& kind) {
  const std::string word = lower(kind.path.back());
  const auto* const found =
      std::find_if(kWords.begin(), kWords.end(), [&](const Word& row) { return row.word == word; });
  if (found == kWords.end()) return role_in_place(kind, word);
  const bool is_embedding = found->role == Role::kEmbedding;
  if (is_embedding && !kind.block.empty()) return Role::kUnknown;
  return found->role;
}

TensorKind kind_of(const std::string& form) {
  TensorKind kind;
  kind.form = form;
  for (const std::string_view part : split_at(form, ".")) kind.path.emplace_back(part);
  kind.is_bias = take_suffix(kind.path);
  const auto last_number = std::find(kind.path.rbegin(), kind.path.rend(), "*");
  const auto inner = last_number.base();  // after the last number
  if (last_number != kind.path.rend()) {
    kind.block = fmt::format("{}", fmt::join(kind.path.begin(), inner, "."));
  }
  if (inner != kind.path.end()) {
    kind.group = fmt::format("{}", fmt::join(inner, kind.path.end() - 1, "."));
  }
  kind.role = role_of(kind);
  return kind;
}

/// True for the last word of one of many numbered tensors, such as w0 or w14. The words w1, w2, w3,
/// w12 and w13 name the matrices of a gated MLP.
bool is_of_series(const TensorKind& kind) {
  constexpr auto kOfMlp = std::to_array<std::string_view>({"1", "2", "3", "12", "13"});
  const std::string word = lower(kind.path.back());
  if (!word.starts_with('w') || word.size() == 1) return false;
  const std::string_view number = std::string_view(word).substr(1);
  return std::ranges::all_of(number, [](unsigned char c) { return std::isdigit(c) != 0; }) &&
         std::ranges::find(kOfMlp, number) == kOfMlp.end();
}

/// Takes their role from w12 and w13 where these are two tensors of a numbered series.
void clear_roles_in_series(std::map<std::string, TensorKind>& kinds) {
  std::set<std::pair<std::string, std::string>> with_series;
  for (const auto& [form, kind] : kinds) {
    if (is_of_series(kind)) with_series.emplace(kind.block, kind.group);
  }
  for (auto& [form, kind] : kinds) {
    const std::string word = lower(kind.path.back());
    if (word != "w12" && word != "w13") continue;
    if (with_series.contains({kind.block, kind.group})) kind.role = Role::kUnknown;
  }
}

}  // namespace

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kEmbedding:
      return "vocabulary";
    case Role::kQuery:
    case Role::kLatentQuery:
      return "query projection";
    case Role::kKey:
      return "key projection";
    case Role::kValue:
      return "value projection";
    case Role::kKeyValue:
    case Role::kLatentKeyValue:
      return "fused k and v";
    case Role::kQueryKeyValue:
      return "fused q, k and v";
    case Role::kUp:
      return "MLP input";
    case Role::kGateUp:
      return "fused gate and up";
    case Role::kOut:
      return "attention output";
    case Role::kDown:
      return "MLP output";
    case Role::kOutOrDown:
    case Role::kGateOrRoute:
    case Role::kUnknown:
      break;
  }
  return "unknown";
}

std::string TensorKind::note() const {
  return fmt::format("{} of {}", tensors, fmt::join(types, ", "));
}

std::map<std::string, TensorKind> kinds_of(std::span<const TensorSpec> tensors) {
  std::map<std::string, TensorKind> kinds;
  for (const TensorSpec& tensor : tensors) {
    const std::string form = name_form(tensor.name);
    const auto [found, is_new] = kinds.try_emplace(form);
    TensorKind& kind = found->second;
    if (is_new) kind = kind_of(form);
    ++kind.tensors;
    kind.shapes.insert(tensor.shape);
    kind.types.insert(
        fmt::format("{} {}", to_string(tensor.dtype), shardtool::to_string(tensor.shape)));
  }
  clear_roles_in_series(kinds);
  return kinds;
}

int fused_parts(const TensorKind& kind) {
  switch (kind.role) {
    case Role::kQueryKeyValue:
      return 3;
    case Role::kKeyValue:
    case Role::kGateUp:
      return 2;
    default:
      return 0;
  }
}

}  // namespace shardtool::mapping
