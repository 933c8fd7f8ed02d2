#include "lib/mapping/propose/head_counts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

namespace shardtool::mapping {
namespace {

constexpr auto kHeadKeys = std::to_array<std::string_view>(
    {"num_attention_heads", "n_heads", "n_head", "num_heads", "attention_heads", "heads", "nhead",
     "encoder_attention_heads", "decoder_attention_heads", "num_attn_heads"});
constexpr auto kKvKeys = std::to_array<std::string_view>(
    {"num_key_value_heads", "n_kv_heads", "num_kv_heads", "kv_heads", "n_head_kv",
     "multi_query_group_num", "num_attention_groups", "kv_n_heads"});
constexpr auto kDimKeys = std::to_array<std::string_view>(
    {"head_dim", "attention_head_dim", "kv_channels", "d_kv", "d_head", "head_size", "qkv_dim"});
constexpr auto kWidthKeys = std::to_array<std::string_view>(
    {"hidden_size", "d_model", "n_embd", "dim", "embed_dim", "hidden_dim"});
/// Words by which a part of config.json and the names of its tensors are recognised.
constexpr auto kPartWords =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"vision", "vis"},
                                                                  {"vision", "vit"},
                                                                  {"vision", "image"},
                                                                  {"audio", "audio"},
                                                                  {"encoder", "encoder"},
                                                                  {"decoder", "decoder"}});

bool is_one_of(std::string_view key, std::span<const std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string_view key_of(std::string_view path) {
  return path.substr(path.rfind('.') == path.npos ? 0 : path.rfind('.') + 1);
}

/// The part of config.json in which the path is: "vision_config." or "".
std::string scope_of(std::string_view path) {
  return std::string(path.substr(0, path.size() - key_of(path).size()));
}

bool mentions(std::string_view text, std::string_view word) {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == b; };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

/// Returns how well a path of config.json goes with a tensor's name; negative: they disagree.
int affinity(std::string_view config_path, std::string_view tensor) {
  int score = 0;
  for (const auto& [part, word] : kPartWords) {
    const bool in_config = mentions(config_path, part);
    const bool in_name = mentions(tensor, word);
    if (in_config && in_name) score += 4;
  }
  const bool special = mentions(config_path, "vision") || mentions(config_path, "audio");
  const bool is_tower = mentions(tensor, "vis") || mentions(tensor, "audio");
  if (special != is_tower) score -= 4;
  return score;
}

/// Returns the first of the keys that this part of config.json has.
std::optional<ConfigNumber> number_in(const ModelConfig& config, const std::string& scope,
                                      std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    const std::string path = scope + std::string(key);
    const nlohmann::json* value = config.find(path);
    if (value != nullptr && value->is_number_integer() && value->get<i64>() > 0)
      return ConfigNumber{value->get<i64>(), path};
  }
  return std::nullopt;
}

/// A number of heads from config.json, with the rest derived from the widths.
struct Candidate {
  HeadCounts counts;
  int score = 0;
};

std::optional<Candidate> candidate(const ModelConfig& config, const std::string& path,
                                   const std::string& tensor, const AttentionWidths& widths) {
  const nlohmann::json* value = config.find(path);
  if (value == nullptr || !value->is_number_integer() || value->get<i64>() < 1) return std::nullopt;
  const i64 heads = value->get<i64>();
  if (widths.query % heads != 0) return std::nullopt;
  Candidate found;
  const i64 dim = widths.query / heads;
  const i64 key = widths.key == 0 ? widths.query : widths.key;
  if (key % dim != 0 || heads % (key / dim) != 0) return std::nullopt;
  found.counts = {{heads, path}, {key / dim, {}}, {dim, {}}, true};
  found.score = affinity(path, tensor);
  const std::string scope = scope_of(path);
  if (const auto kv = number_in(config, scope, kKvKeys)) {
    if (kv->value == key / dim) found.counts.kv_heads.path = kv->path;
    found.score += kv->value == key / dim ? 2 : -1;
  }
  if (const auto stated = number_in(config, scope, kDimKeys)) {
    if (stated->value == dim) found.counts.head_dim.path = stated->path;
    found.score += stated->value == dim ? 2 : -1;
  } else if (const auto width = number_in(config, scope, kWidthKeys);
             width && width->value == heads * dim) {
    found.counts.head_dim.path = width->path + " / config." + path;
  }
  if (widths.head_dim > 0) found.score += widths.head_dim == dim ? 3 : -3;
  return found;
}

std::optional<HeadCounts> inferred(const AttentionWidths& widths) {
  const i64 dim = widths.head_dim;
  if (dim == 0 || widths.query % dim != 0 || widths.key % dim != 0) return std::nullopt;
  const i64 heads = widths.query / dim;
  const i64 kv = widths.key == 0 ? heads : widths.key / dim;
  if (heads % kv != 0) return std::nullopt;
  return HeadCounts{{heads, {}}, {kv, {}}, {dim, {}}, false};
}

}  // namespace

std::optional<HeadCounts> find_head_counts(const ModelConfig* config, const std::string& path,
                                           const AttentionWidths& widths) {
  if (widths.query == 0) return std::nullopt;
  std::optional<Candidate> best;
  for (const std::string& at : config ? config->size_paths() : std::vector<std::string>{}) {
    if (!is_one_of(key_of(at), kHeadKeys)) continue;
    const auto found = candidate(*config, at, path, widths);
    if (found && (!best || found->score > best->score)) best = found;
  }
  if (best) return best->counts;
  return inferred(widths);
}

std::optional<i64> find_hidden_width(const ModelConfig* config) {
  if (config == nullptr) return std::nullopt;
  for (const char* scope : {"", "text_config."}) {
    if (const auto width = number_in(*config, scope, kWidthKeys)) return width->value;
  }
  return std::nullopt;
}

bool states_other_heads(const ModelConfig* config, i64 heads) {
  const std::vector<std::string> paths =
      config == nullptr ? std::vector<std::string>{} : config->size_paths();
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
    const std::string_view key = key_of(path);
    if (!key.ends_with("heads") || is_one_of(key, kHeadKeys) || is_one_of(key, kKvKeys))
      return false;
    const nlohmann::json* value = config->find(path);
    return value != nullptr && value->is_number_integer() && value->get<i64>() == heads;
  });
}

std::optional<ConfigNumber> find_vocabulary(const ModelConfig* config, i64 rows) {
  constexpr i64 kMostPadding = 1024;
  if (config == nullptr) return std::nullopt;
  std::optional<ConfigNumber> nearest;
  for (const std::string& path : config->size_paths()) {
    const std::string_view key = key_of(path);
    if (!key.ends_with("vocab_size") && key != "vocab" && key != "n_vocab") continue;
    const nlohmann::json* value = config->find(path);
    if (value == nullptr || !value->is_number_integer()) continue;
    const i64 size = value->get<i64>();
    const bool fits = size <= rows && rows - size < kMostPadding && size > 0;
    if (fits && (!nearest || size > nearest->value)) nearest = ConfigNumber{size, path};
  }
  return nearest;
}

}  // namespace shardtool::mapping
