#include "lib/mapping/attention_cache.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "lib/mapping/document/glob.h"
#include "lib/mapping/document/name_form.h"
#include "lib/mapping/facts.h"

namespace shardtool::mapping {
namespace {

using nlohmann::json;

std::vector<std::string> texts(const json& list) {
  return list.get<std::vector<std::string>>();
}

/// config.json, asked by the facts' names for things.
class Keys {
 public:
  Keys(const json& facts, const ModelConfig& config, const std::map<std::string, i64>& axis_sizes)
      : facts_(facts), config_(config), axis_sizes_(axis_sizes) {}

  /// The first of the mapping's axes that go by `name`, those of layers without a window first
  /// where the layer is one.
  std::optional<i64> axis(const std::string& name, bool has_window) const {
    if (!has_window) {
      const auto own = axis_in("axes_without_window", name);
      if (own) return own;
    }
    return axis_in("axes", name);
  }
  std::optional<i64> axis_in(const std::string& table, const std::string& name) const {
    for (const std::string& axis : texts(facts_.at(table).at(name))) {
      const auto found = axis_sizes_.find(axis);
      if (found != axis_sizes_.end()) return found->second;
    }
    return std::nullopt;
  }

  const json* value(const std::string& key) const {
    for (const auto& root : facts_.at("roots")) {
      const json* found = config_.find(root.get<std::string>() + key);
      if (found != nullptr && !found->is_null()) return found;
    }
    return nullptr;
  }
  /// The first of the keys that go by `name`.
  std::optional<i64> size(const std::string& name) const {
    for (const std::string& key : texts(facts_.at("keys").at(name))) {
      for (const auto& root : facts_.at("roots")) {
        if (const auto found = config_.size(root.get<std::string>() + key)) return found;
      }
    }
    return std::nullopt;
  }
  /// Like `size`, but 0 for none, and for a 0 that stands for that.
  i64 count(const std::string& name) const {
    for (const std::string& key : texts(facts_.at("keys").at(name))) {
      const json* found = value(key);
      if (found != nullptr && found->is_number_integer())
        return std::max<i64>(0, found->get<i64>());
    }
    return 0;
  }
  bool is_true(const std::string& key) const {
    const json* found = value(key);
    return found != nullptr && found->is_boolean() && found->get<bool>();
  }

 private:
  const json& facts_;
  const ModelConfig& config_;
  const std::map<std::string, i64>& axis_sizes_;
};

std::optional<i64> head_dim(const Keys& keys, bool has_window) {
  if (const auto mapped = keys.axis("head_dim", has_window)) return mapped;
  if (const auto given = keys.size("head_dim")) return given;
  const auto hidden = keys.size("hidden");
  const auto heads = keys.size("heads");
  if (!hidden || !heads || *hidden % *heads != 0) return std::nullopt;
  return *hidden / *heads;
}

std::optional<i64> kv_heads(const Keys& keys, const json& facts, bool has_window) {
  if (const auto mapped = keys.axis("kv_heads", has_window)) return mapped;
  const json& single = facts.at("single_kv_head");
  if (keys.is_true(single.at("key")) && !keys.is_true(single.at("unless"))) return 1;
  const auto given = keys.size("kv_heads");
  return given ? given : keys.size("heads");
}

/// Which layers look back over a window only.
class Windows {
 public:
  Windows(const Keys& keys, const json& facts, const std::string& model_type) : keys_(keys) {
    for (const json& named : facts.at("layer_types")) {
      if (types_ != nullptr) break;
      types_ = keys.value(named.at("key"));
      windows_ = named.at("windows");
    }
    window_ = keys.count("window");
    for (const auto& rule : facts.at("windows")) {
      const auto types = texts(rule.at("model_type"));
      if (std::find(types.begin(), types.end(), model_type) != types.end()) rule_ = rule;
    }
  }

  /// Tokens that the layer keeps; 0: all.
  i64 of(i64 layer) const {
    if (types_ != nullptr && types_->is_array()) return by_type(layer);
    if (window_ == 0 || rule_.is_null()) return 0;
    if (rule_.contains("switch") && !keys_.is_true(rule_.at("switch"))) return 0;
    const auto layers = rule_.at("layers").get<std::string>();
    if (layers == "from") return layer >= number("from_key", 0) ? window_ : 0;
    if (layers == "all_but_every") return (layer + 1) % number("every_key", 1) == 0 ? 0 : window_;
    return window_;
  }
  /// Whether the layer is of a kind that has a window, whatever its size.
  bool is_local(i64 layer) const {
    if (types_ == nullptr || !types_->is_array()) return of(layer) > 0;
    if (layer >= static_cast<i64>(types_->size())) return false;
    return windows_.contains(type_of(layer));
  }
  /// A window is given, but not which layers have it.
  bool undecided() const { return window_ > 0 && rule_.is_null() && types_ == nullptr; }

 private:
  i64 by_type(i64 layer) const {
    if (!is_local(layer)) return 0;
    return keys_.count(windows_.at(type_of(layer)));
  }
  /// The word of a list, or its number as text.
  std::string type_of(i64 layer) const {
    const json& type = types_->at(static_cast<size_t>(layer));
    return type.is_string() ? type.get<std::string>() : type.dump();
  }
  i64 number(const char* key, i64 least) const {
    const json* found = rule_.contains(key) ? keys_.value(rule_.at(key)) : nullptr;
    if (found != nullptr && found->is_number_integer()) return std::max(least, found->get<i64>());
    return std::max(least, rule_.value("every", i64{0}));
  }

  const Keys& keys_;
  const json* types_ = nullptr;
  json windows_;
  json rule_;
  i64 window_ = 0;
};

/// The projections that make what is cached, by layer.
class Projections {
 public:
  explicit Projections(const json& facts) {
    for (const std::string& glob : texts(facts.at("not"))) not_.push_back(glob_filter(glob));
    add(texts(facts.at("cross")), {.cross = true});
    add(texts(facts.at("shared").at("globs")), {.shared = true});
    add(texts(facts.at("recurrent")), {.recurrent = true});
    add(texts(facts.at("latent")), {.latent = true});
    add(texts(facts.at("one_vector")), {.latent = true, .one_vector = true});
    int kind = 0;
    for (const std::string& glob : texts(facts.at("compressed").at("entry")))
      add({glob}, {.latent = true, .one_vector = true, .compressed = ++kind});
    add(texts(facts.at("heads")), {});
  }

  struct Found {
    i64 layer = 0;
    i64 part = 0;  ///< of a layer that attends several times
    bool latent = false;
    bool cross = false;
    bool shared = false;      ///< by several layers, which take turns
    bool recurrent = false;   ///< of a layer that keeps states instead, whatever it calls keys
    bool one_vector = false;  ///< as long as the tensor has rows
    int compressed = 0;       ///< which kind of entries, each of several tokens; 0: of one token
  };
  std::optional<Found> find(const std::string& name) {
    const Kind* const kind = kinds_.of(name_form(name), [&] { return kind_of(name); });
    if (kind == nullptr) return std::nullopt;
    Found found = kind->found;
    const RE2& regex = *kind->regex;
    const bool matches = regex.NumberOfCapturingGroups() > 1
                             ? RE2::FullMatch(name, regex, &found.layer, &found.part)
                             : RE2::FullMatch(name, regex, &found.layer);
    return matches ? std::optional(found) : std::nullopt;
  }

 private:
  struct Kind {
    std::unique_ptr<RE2> regex;
    Found found;
  };

  void add(const std::vector<std::string>& globs, Found found) {
    for (const std::string& glob : globs)
      all_.push_back({std::make_unique<RE2>(Glob(glob).regex()), found});
  }
  const Kind* kind_of(const std::string& name) const {
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const Kind& kind) {
      return RE2::FullMatch(name, *kind.regex);
    });
    if (found == all_.end()) return nullptr;
    const bool barred =
        std::any_of(not_.begin(), not_.end(), [&](const auto& matches) { return matches(name); });
    return barred && !found->found.cross ? nullptr : &*found;
  }

  std::vector<std::function<bool(std::string_view)>> not_;
  std::vector<Kind> all_;
  ByForm<const Kind*> kinds_;
};

std::optional<std::string> dtype_of(const Keys& keys, const json& facts) {
  for (const std::string& key : texts(facts.at("dtype"))) {
    const json* found = keys.value(key);
    if (found != nullptr && found->is_string()) return found->get<std::string>();
  }
  return std::nullopt;
}

/// The projections of the model's own layers, one for every kind of entries that a layer keeps.
struct LayerKey {
  bool cross = false;
  i64 layer = 0;
  i64 part = 0;
  int compressed = 0;
  auto operator<=>(const LayerKey&) const = default;
};
using Layers = std::map<LayerKey, LayerCache>;

/// The layers that use shared projections, in the order of which they take turns.
void add_shared(const std::map<i64, size_t>& shared, const Keys& keys, const json& facts,
                Layers& layers) {
  const json* kinds = keys.value(facts.at("list"));
  if (shared.empty() || kinds == nullptr || !kinds->is_array()) return;
  auto next = shared.begin();
  for (size_t number = 0; number < kinds->size(); ++number) {
    if (kinds->at(number) != facts.at("word")) continue;
    LayerCache layer;
    layer.layer = static_cast<i64>(number);
    layer.tensor = next->second;
    layers.emplace(LayerKey{false, layer.layer}, layer);
    if (++next == shared.end()) next = shared.begin();
  }
}

/// How many tokens an entry stands for: the rows of the tensor that has a bias for each of them,
/// which stands beside the entry's own.
class Strides {
 public:
  Strides(const json& facts, std::span<const TensorSpec> tensors) {
    const std::string leaf = "." + facts.at("tokens").get<std::string>();
    for (const TensorSpec& tensor : tensors) {
      const std::string_view name = tensor.name;
      if (!name.ends_with(leaf) || tensor.shape.size() != 2) continue;
      rows_.emplace(name.substr(0, name.size() - leaf.size()), tensor.shape[0]);
    }
  }
  /// Of "MODULE.norm.weight".
  i64 of(std::string_view entry) const {
    for (size_t dot = entry.rfind('.'); dot != entry.npos; dot = entry.rfind('.', dot - 1)) {
      const auto found = rows_.find(entry.substr(0, dot));
      if (found != rows_.end()) return std::max<i64>(found->second, 1);
      if (dot == 0) break;
    }
    return 1;
  }

 private:
  std::map<std::string_view, i64> rows_;
};

Layers layers_of(const Keys& keys, const json& facts, std::span<const TensorSpec> tensors) {
  Projections projections(facts);
  const Strides strides(facts.at("compressed"), tensors);
  // The last layers may read what earlier ones keep, whatever projections are stored for them.
  const auto all_layers = keys.size("layers");
  const i64 n_layers =
      all_layers.value_or(std::numeric_limits<i64>::max()) - keys.count("reusing_layers");
  Layers layers;
  std::map<i64, size_t> shared;
  std::set<i64> recurrent;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const auto found = projections.find(tensors[t].name);
    if (!found || found->layer >= n_layers) continue;
    if (found->shared) {
      shared.emplace(found->layer, t);
      continue;
    }
    if (found->recurrent) {
      recurrent.insert(found->layer);
      continue;
    }
    LayerCache layer;
    layer.layer = found->layer;
    layer.tensor = t;
    layer.latent = found->latent;
    layer.cross = found->cross;
    if (found->one_vector && !tensors[t].shape.empty()) layer.unit_elements = tensors[t].shape[0];
    if (found->compressed > 0) layer.stride = strides.of(tensors[t].name);
    layers.emplace(LayerKey{found->cross, found->layer, found->part, found->compressed}, layer);
  }
  for (const i64 layer : recurrent) layers.erase({false, layer, 0});
  add_shared(shared, keys, facts.at("shared"), layers);
  return layers;
}

/// Whether the layer sees what the index of an earlier one chose, and keeps no keys of its own for
/// that.
bool shares_index(i64 layer, const Keys& keys, const json& facts) {
  const json* kinds = keys.value(facts.at("list"));
  const auto number = static_cast<size_t>(layer);
  return kinds != nullptr && kinds->is_array() && number < kinds->size() &&
         kinds->at(number) == facts.at("word");
}

/// What a latent keeps: the rows of its projection, or where that is packed what config.json says.
std::optional<i64> latent_size(const TensorSpec& tensor, const Keys& keys,
                               const std::string& prefix) {
  if (tensor.name.ends_with(".weight") && tensor.shape.size() == 2) return tensor.shape[0];
  const auto rank = keys.size(prefix + "latent_rank");
  const auto rotated = keys.size(prefix + "rope_dim");
  return rank && rotated ? std::optional(*rank + *rotated) : std::nullopt;
}

/// Elements per token; nothing when config.json does not say.
bool measure(LayerCache& layer, const TensorSpec& tensor, bool has_window, const Keys& keys,
             const json& facts) {
  if (layer.unit_elements > 0) return true;
  if (layer.latent) {
    // Layers with a window may have a latent of their own, and no index.
    const bool has_own = has_window && keys.size("window_latent_rank");
    const auto size = latent_size(tensor, keys, has_own ? "window_" : "");
    if (!size) return false;
    layer.units = 1;
    // Beside a latent the key of an index that chooses positions, where there is one.
    const bool has_index = !has_own && !shares_index(layer.layer, keys, facts.at("sharing_index"));
    layer.unit_elements = *size + (has_index ? keys.size("index_dim").value_or(0) : 0);
    return true;
  }
  const auto heads = kv_heads(keys, facts, has_window);
  const auto width = head_dim(keys, has_window);
  if (!heads || !width) return false;
  layer.units = *heads;
  layer.unit_elements = *width + keys.axis("value_dim", has_window).value_or(*width);
  return true;
}

}  // namespace

AttentionCache attention_cache(const ModelConfig& config, std::span<const TensorSpec> tensors,
                               const std::map<std::string, i64>& axis_sizes) {
  const json known = facts("attention_cache");
  const Keys keys(known, config, axis_sizes);
  AttentionCache cache;
  cache.dtype = dtype_of(keys, known);
  cache.hidden = keys.size("hidden");
  cache.heads = keys.size("heads");
  cache.n_layers = keys.size("layers");
  cache.experts_per_token = keys.size("experts_per_token");
  cache.source_positions = keys.size("source_positions");
  const Windows windows(keys, known, config.model_type());
  bool crosses = false;
  // Encoders whose projections are named as those of decoders keep nothing.
  const auto encoders = texts(known.at("encoders"));
  const bool is_encoder =
      std::find(encoders.begin(), encoders.end(), config.model_type()) != encoders.end();
  auto layers = is_encoder ? Layers() : layers_of(keys, known, tensors);
  for (auto& [key, layer] : layers) {
    crosses = crosses || layer.cross;
    layer.window = layer.cross || key.compressed > 0 ? 0 : windows.of(layer.layer);
    if (measure(layer, tensors[layer.tensor], windows.is_local(layer.layer), keys, known)) {
      cache.layers.push_back(layer);
      continue;
    }
    cache.notes.push_back(fmt::format(
        "what attention caches is not counted: {} does not say the number or width of its heads",
        config.file()));
    break;
  }
  if (cache.layers.empty() && cache.notes.empty()) {
    cache.notes.push_back("no attention that caches was found: no KV cache is counted");
  }
  const auto has_cross = texts(known.at("has_cross"));
  if (!crosses && !cache.layers.empty() &&
      std::any_of(has_cross.begin(), has_cross.end(),
                  [&keys](const std::string& key) { return keys.is_true(key); })) {
    cache.notes.push_back(
        fmt::format("{} speaks of attention to an encoder, and no projection of it is known: what "
                    "it caches is not counted",
                    config.file()));
  }
  if (windows.undecided() && !cache.layers.empty()) {
    cache.notes.push_back(
        fmt::format("{} has a sliding window, but not which layers use it: all "
                    "are counted at full length",
                    config.file()));
  }
  return cache;
}

}  // namespace shardtool::mapping
