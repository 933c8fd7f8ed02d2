#include "lib/mapping/propose/propose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "lib/mapping/propose/head_counts.h"
#include "lib/mapping/propose/sublayers.h"

namespace shardtool::mapping {
namespace {

using nlohmann::json;
using Kinds = std::map<std::string, TensorKind>;

/// Storage order of the linear layers' weights.
enum class Order { kOutIn, kInOut };

/// A weight's output and input extents; the axis before them counts experts.
struct Widths {
  i64 out = 0;
  i64 in = 0;
};

Widths widths_of(const TensorKind& kind, Order order) {
  const Shape& shape = kind.shape();
  const i64 rows = shape[shape.size() - 2];
  const i64 columns = shape.back();
  return order == Order::kOutIn ? Widths{rows, columns} : Widths{columns, rows};
}

bool contains(const std::vector<i64>& values, i64 value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// Returns true for parts that engines often leave whole: image and audio encoders, blocks for
/// several tokens ahead, and what has no layer number.
bool is_aside(const TensorKind& kind) {
  constexpr auto kInnerWords =
      std::to_array<std::string_view>({"vis", "vit", "image", "audio", "mtp", "norm"});
  return kind.block.empty() ||
         std::any_of(kInnerWords.begin(), kInnerWords.end(),
                     [&](std::string_view word) { return kind.form.find(word) != kind.form.npos; });
}

/// Returns the order in which exactly one of the weight's sides is as wide as the hidden states;
/// this is the input side.
std::optional<Order> order_by_width(const Widths& straight, const std::vector<i64>& hidden) {
  const bool out_is_hidden = contains(hidden, straight.out);
  const bool in_is_hidden = contains(hidden, straight.in);
  if (in_is_hidden == out_is_hidden) return std::nullopt;
  return in_is_hidden ? Order::kOutIn : Order::kInOut;
}

/// Returns the order that the extents of the bias, of the norms around or the hidden size in
/// config.json prove for a weight that reads hidden states, if any.
std::optional<Order> proved_order(const Kinds& kinds, const TensorKind& weight,
                                  const ModelConfig* config) {
  const Widths straight = widths_of(weight, Order::kOutIn);
  if (straight.out == straight.in) return std::nullopt;
  if (const TensorKind* bias = bias_of(kinds, weight)) {
    if (bias->shape().back() == straight.out) return Order::kOutIn;
    if (bias->shape().back() == straight.in) return Order::kInOut;
  }
  if (const auto order = order_by_width(straight, norm_extents(kinds, weight))) return order;
  const auto hidden = is_aside(weight) ? std::nullopt : find_hidden_width(config);
  return hidden ? order_by_width(straight, {*hidden}) : std::nullopt;
}

bool are_matrices(const std::vector<const TensorKind*>& kinds, const TensorKind& out) {
  const auto rank = out.shape().size();
  const auto fits = [rank](const TensorKind* kind) {
    return kind->has_one_shape() && kind->shape().size() == rank;
  };
  return (rank == 2 || rank == 3) && out.has_one_shape() &&
         std::all_of(kinds.begin(), kinds.end(), fits);
}

class Proposer {
 public:
  Proposer(const ModelConfig* config, std::span<const TensorSpec> tensors, const mesh::Mesh& mesh)
      : config_(config), mesh_(mesh), kinds_(kinds_of(tensors)), layers_(find_sublayers(kinds_)) {}

  Proposal run() && {
    find_usual_order();
    for (const AttentionKinds& attention : layers_.attentions) propose_attention(attention);
    for (const MlpKinds& mlp : layers_.mlps) propose_mlp(mlp);
    propose_vocabulary();
    for (const auto& [form, kind] : kinds_) {
      if (kind.is_bias) propose_bias(kind);
    }
    for (const auto& [form, kind] : kinds_) {
      if (!rules_.contains(form)) rules_[form] = whole(kind);
    }
    for (auto& [form, rule] : rules_) {
      rule.tensors = kinds_.at(form).note();
      result_.rules.push_back(std::move(rule));
    }
    return std::move(result_);
  }

 private:
  /// Counts which order the weights have whose order is proved; the others are taken alike.
  void find_usual_order() {
    int straight = 0;
    for (const MlpKinds& mlp : layers_.mlps) {
      if (!are_matrices(mlp.in, *mlp.out) || mlp.in.front()->role == Role::kGateUp) continue;
      const auto order = proved_order(kinds_, *mlp.in.front(), config_);
      if (order) straight += *order == Order::kOutIn ? 1 : -1;
    }
    usual_ = straight >= 0 ? Order::kOutIn : Order::kInOut;
  }

  std::string cut_over(std::string_view axis) const {
    return mesh_.has_axis(axis) ? fmt::format("\"{}\"", axis) : "null";
  }

  /// Adds a rule for a weight: its outputs are cut as `dim` says, its inputs are whole.
  void cut_outputs(const TensorKind& kind, Order order, const std::string& dim, Certainty certainty,
                   const std::string& reason) {
    cut_side(kind, order, order == Order::kOutIn ? 0 : 1, dim, certainty, reason);
  }
  /// Adds a rule for a weight: its inputs are cut as `dim` says, its outputs are whole.
  void cut_inputs(const TensorKind& kind, Order order, const std::string& dim, Certainty certainty,
                  const std::string& reason) {
    cut_side(kind, order, order == Order::kOutIn ? 1 : 0, dim, certainty, reason);
  }
  /// `axis` is that of the matrix, behind an axis of experts.
  void cut_side(const TensorKind& kind, Order order, int axis, const std::string& dim,
                Certainty certainty, const std::string& reason) {
    const bool is_doubtful = certainty == Certainty::kSure && is_aside(kind);
    ProposedRule rule{kind.form, kind.role, {}, false, is_doubtful ? Certainty::kLikely : certainty,
                      reason};
    if (kind.shape().size() == 3) {
      rule.dims.emplace_back("experts");
      result_.axes["experts"] = cut_over("ep");
    }
    rule.dims.push_back(axis == 0 ? dim : "");
    rule.dims.push_back(axis == 0 ? "" : dim);
    input_axis_[kind.form] = static_cast<int>(rule.dims.size()) - (order == Order::kOutIn ? 1 : 2);
    rules_[kind.form] = std::move(rule);
  }

  // MLPs

  /// Returns true if the inputs' outputs are the output's inputs in this order.
  static bool pairs(const MlpKinds& mlp, Order order) {
    const i64 inner = widths_of(*mlp.out, order).in;
    const i64 hidden = widths_of(*mlp.out, order).out;
    return std::all_of(mlp.in.begin(), mlp.in.end(), [&](const TensorKind* kind) {
      const Widths widths = widths_of(*kind, order);
      const i64 parts = kind->role == Role::kGateUp ? 2 : 1;
      return widths.out == parts * inner && widths.in == hidden;
    });
  }

  /// Two matrices in one although the name tells of one: an up of twice the width.
  static bool is_double(const MlpKinds& mlp, Order order) {
    return mlp.in.size() == 1 && mlp.in.front()->role == Role::kUp &&
           widths_of(*mlp.in.front(), order).out == 2 * widths_of(*mlp.out, order).in;
  }

  void propose_mlp(const MlpKinds& mlp) {
    if (!are_matrices(mlp.in, *mlp.out)) return;
    std::vector<Order> fitting;
    for (const Order order : {usual_, usual_ == Order::kOutIn ? Order::kInOut : Order::kOutIn}) {
      if (pairs(mlp, order) || is_double(mlp, order)) fitting.push_back(order);
    }
    if (fitting.empty()) return;
    const auto proved = proved_order(kinds_, *mlp.in.front(), config_);
    const bool is_proved =
        fitting.size() == 1 ||
        (proved && std::find(fitting.begin(), fitting.end(), *proved) != fitting.end());
    const Order order = fitting.size() > 1 && proved ? *proved : fitting.front();
    const Certainty certainty = is_proved ? Certainty::kSure : Certainty::kLikely;
    const i64 inner = widths_of(*mlp.out, order).in;
    result_.axes["mlp"] = cut_over("tp");
    for (const TensorKind* kind : mlp.in) {
      const bool fused = kind->role == Role::kGateUp || is_double(mlp, order);
      cut_outputs(*kind, order, fused ? "mlp + mlp" : "mlp", fused ? Certainty::kGuess : certainty,
                  fused ? fmt::format("fused gate and up of {} rows each, one after the other; "
                                      "\"mlp*2\" if they are interleaved",
                                      inner)
                        : fmt::format("MLP input, {} features", inner));
    }
    cut_inputs(*mlp.out, order, "mlp", certainty, fmt::format("MLP output, {} features", inner));
  }

  // Attention

  /// Returns the extent of a norm over single heads beside the weights; 0 if there is none.
  i64 head_norm(const AttentionKinds& attention) const {
    for (const auto& [form, kind] : kinds_) {
      const bool beside =
          kind.block == attention.out->block && kind.group.starts_with(attention.in.front()->group);
      const bool is_norm = form.find("norm") != form.npos && kind.shape().size() == 1;
      if (beside && is_norm && kind.has_one_shape() && kind.shape()[0] > 1 &&
          !attention.in.front()->group.empty())
        return kind.shape()[0];
    }
    return 0;
  }

  std::optional<AttentionWidths> widths_in(const AttentionKinds& attention, Order order) const {
    AttentionWidths widths;
    widths.query = widths_of(*attention.out, order).in;
    widths.head_dim = head_norm(attention);
    if (const TensorKind* fused = attention.find(Role::kQueryKeyValue)) {
      const i64 rest = widths_of(*fused, order).out - widths.query;
      if (rest <= 0 || rest % 2 != 0 || rest / 2 > widths.query) return std::nullopt;
      widths.key = rest / 2;
    } else if (const TensorKind* pair = attention.find(Role::kKeyValue)) {
      widths.key = widths_of(*pair, order).out / 2;
    } else if (const TensorKind* key = attention.find(Role::kKey)) {
      widths.key = widths_of(*key, order).out;
      if (widths_of(*attention.find(Role::kValue), order).out != widths.key) return std::nullopt;
    }
    return widths;
  }

  Order order_of(const AttentionKinds& attention) const {
    for (const TensorKind* kind : attention.in) {
      if (const auto order = proved_order(kinds_, *kind, config_)) return *order;
    }
    return usual_;
  }

  void propose_attention(const AttentionKinds& attention) {
    if (!are_matrices(attention.in, *attention.out) || attention.out->shape().size() != 2) return;
    const Order order = order_of(attention);
    if (attention.find(Role::kLatentKeyValue) != nullptr) return propose_latent(attention, order);
    const auto widths = widths_in(attention, order);
    if (!widths) return;
    const auto counts = find_head_counts(config_, attention.out->form, *widths);
    if (!counts) return;
    const HeadAxes axes = head_axes(*counts, attention.out->form);
    Certainty certainty = counts->is_stated ? Certainty::kSure : Certainty::kLikely;
    if (!attention.others.empty()) certainty = Certainty::kGuess;
    for (const TensorKind* kind : attention.others) unknown_.insert(kind->form);
    const std::string heads = described(*counts);
    for (const TensorKind* kind : attention.in)
      propose_input(*kind, order, *counts, axes, certainty, heads);
    cut_inputs(*attention.out, order, axes.heads + "*" + axes.head_dim, certainty,
               "attention output: " + heads);
  }

  static std::string described(const HeadCounts& counts) {
    const std::string kv = counts.kv_heads.value == counts.heads.value
                               ? ""
                               : fmt::format(" and {} KV heads", counts.kv_heads.value);
    const std::string source =
        counts.is_stated ? fmt::format(" (config.{})", counts.heads.path) : " (from a norm)";
    return fmt::format("{} heads{} of {}{}", counts.heads.value, kv, counts.head_dim.value, source);
  }

  /// Names of the axes of one kind of attention.
  struct HeadAxes {
    std::string heads, kv_heads, head_dim;
  };

  void propose_input(const TensorKind& kind, Order order, const HeadCounts& counts,
                     const HeadAxes& axes, Certainty certainty, const std::string& heads) {
    const std::string query = axes.heads + "*" + axes.head_dim;
    const std::string key = axes.kv_heads + "*" + axes.head_dim;
    const i64 width = counts.heads.value * counts.head_dim.value;
    const i64 rows = widths_of(kind, order).out;
    if (kind.role == Role::kQuery && rows != width) {
      if (rows % counts.heads.value != 0) return;
      return cut_outputs(kind, order, fmt::format("{}*{}", axes.heads, rows / counts.heads.value),
                         Certainty::kGuess,
                         fmt::format("{} rows of each of {} heads, more than the output reads",
                                     rows / counts.heads.value, counts.heads.value));
    }
    if (kind.role == Role::kQuery)
      return cut_outputs(kind, order, query, certainty, "query projection: " + heads);
    const i64 key_width = counts.kv_heads.value * counts.head_dim.value;
    if (kind.role == Role::kKey || kind.role == Role::kValue) {
      if (rows != key_width) return;
      return cut_outputs(kind, order, key, certainty,
                         fmt::format("{}: {}", to_string(kind.role), heads));
    }
    if (kind.role == Role::kKeyValue) {
      if (rows != 2 * key_width) return;
      return cut_outputs(kind, order, key + " + " + key, Certainty::kGuess,
                         fmt::format("fused k and v, one after the other: {}", heads));
    }
    if (rows != width + 2 * key_width) return;
    propose_fused(kind, order, counts, axes, heads);
  }

  void propose_fused(const TensorKind& kind, Order order, const HeadCounts& counts,
                     const HeadAxes& axes, const std::string& heads) {
    const std::string query = axes.heads + "*" + axes.head_dim;
    const std::string key = axes.kv_heads + "*" + axes.head_dim;
    const bool by_head = kind.path.back() == "query_key_value";
    const i64 group = counts.heads.value / counts.kv_heads.value + 2;
    const std::string grouped = fmt::format("{}*{}*{}", axes.kv_heads, group, axes.head_dim);
    const std::string concat = fmt::format("{} + {} + {}", query, key, key);
    cut_outputs(
        kind, order, by_head ? grouped : concat, Certainty::kGuess,
        by_head ? fmt::format("fused q, k and v, head by head: {}; \"{}\" if q, k and v stand one "
                              "after the other",
                              heads, concat)
                : fmt::format("fused q, k and v, one after the other: {}; \"{}\" if they stand "
                              "head by head",
                              heads, grouped));
  }

  /// Attention with a low-rank latent: heads of several widths, all over one axis.
  void propose_latent(const AttentionKinds& attention, Order order) {
    const TensorKind* query = attention.find(Role::kLatentQuery);
    if (query == nullptr) query = attention.find(Role::kQuery);
    const TensorKind& pair = *attention.find(Role::kLatentKeyValue);
    const auto counts =
        find_head_counts(config_, pair.form, {widths_of(*attention.out, order).in, 0, 0});
    if (!counts) return;
    const i64 heads = counts->heads.value;
    for (const TensorKind* kind : {query, &pair}) {
      if (widths_of(*kind, order).out % heads != 0) return;
    }
    const HeadAxes axes = head_axes({counts->heads, counts->heads, {0, {}}, true}, pair.form);
    const std::string reason = fmt::format("{} heads (config.{})", heads, counts->heads.path);
    const auto dim = [&](i64 width) { return fmt::format("{}*{}", axes.heads, width / heads); };
    for (const TensorKind* kind : {query, &pair})
      cut_outputs(*kind, order, dim(widths_of(*kind, order).out), Certainty::kSure,
                  fmt::format("{} from a latent: {}", to_string(kind->role), reason));
    cut_inputs(*attention.out, order, dim(widths_of(*attention.out, order).in), Certainty::kSure,
               "attention output: " + reason);
  }

  static std::string size_text(const ConfigNumber& number) {
    if (number.path.empty()) return std::to_string(number.value);
    return json("config." + number.path).dump();
  }

  /// Returns the axes for these heads; another kind of attention gets axes of its own.
  HeadAxes head_axes(const HeadCounts& counts, const std::string& tensor) {
    const auto key = std::tuple(counts.heads.value, counts.kv_heads.value, counts.head_dim.value,
                                counts.heads.path);
    const auto known = head_axes_.find(key);
    if (known != head_axes_.end()) return known->second;
    const bool is_tower = tensor.find("vis") != tensor.npos;
    std::string prefix = head_axes_.empty() ? "" : is_tower ? "vision_" : "other_";
    while (result_.axes.contains(prefix + "heads")) prefix += "other_";
    HeadAxes axes{prefix + "heads", prefix + "heads", prefix + "head_dim"};
    const std::string tp = cut_over("tp");
    const std::string size = size_text(counts.heads);
    if (counts.kv_heads.value == counts.heads.value) {
      result_.axes[axes.heads] = fmt::format(R"({{"mesh": {}, "size": {}}})", tp, size);
    } else {
      axes.kv_heads = prefix + "kv_heads";
      result_.axes[axes.heads] =
          fmt::format(R"({{"mesh": {}, "size": {}, "groups": "{}"}})", tp, size, axes.kv_heads);
      result_.axes[axes.kv_heads] = fmt::format(
          R"({{"mesh": {}, "size": {}, "small": "replicate"}})", tp, size_text(counts.kv_heads));
    }
    if (counts.head_dim.value > 0) {
      result_.axes[axes.head_dim] = fmt::format(R"({{"size": {}}})", size_text(counts.head_dim));
    }
    return head_axes_[key] = axes;
  }

  // The rest

  void propose_vocabulary() {
    for (const auto& [form, kind] : kinds_) {
      const bool is_named = kind.role == Role::kEmbedding;
      const bool is_root = kind.block.empty() && kind.role == Role::kUnknown;
      if ((!is_named && !is_root) || kind.is_bias || !kind.has_one_shape()) continue;
      const Shape& shape = kind.shape();
      if (shape.size() != 2 || shape[0] <= shape[1]) continue;
      const auto stated = find_vocabulary(config_, shape[0]);
      const bool is_long = is_named && shape[0] > 2 * shape[1];
      if (!stated && !is_long) continue;
      if (is_root && stated->value != shape[0]) continue;
      result_.axes["vocab"] = cut_over("tp");
      rules_[form] = {
          form,
          kind.role,
          {"vocab", ""},
          false,
          stated && is_named ? Certainty::kSure : Certainty::kLikely,
          stated ? fmt::format("{} rows of the vocabulary (config.{})", shape[0], stated->path)
                 : fmt::format("{} rows of a vocabulary, by name and shape", shape[0])};
      input_axis_[form] = 1;
    }
  }

  void propose_bias(const TensorKind& kind) {
    for (const auto& [form, weight] : kinds_) {
      const auto rule = rules_.find(form);
      if (weight.is_bias || weight.path != kind.path || rule == rules_.end()) continue;
      const int input = input_axis_.at(form);
      std::vector<std::string> dims = rule->second.dims;
      const bool reduced = !dims[static_cast<size_t>(input)].empty();
      dims.erase(dims.begin() + input);
      if (dims.size() != kind.shape().size() || !kind.has_one_shape()) return;
      rules_[kind.form] = {kind.form,
                           weight.role,
                           dims,
                           reduced,
                           rule->second.certainty,
                           "bias of the " + rule->second.reason};
      return;
    }
  }

  /// Returns the rule of a tensor that every rank gets whole.
  ProposedRule whole(const TensorKind& kind) const {
    if (unknown_.contains(kind.form)) {
      return {kind.form, Role::kUnknown,      {},
              false,     Certainty::kUnknown, "use in attention not known, whole on every rank"};
    }
    const bool is_vector = kind.shape().size() <= 1;
    return {kind.form,
            Role::kUnknown,
            {},
            false,
            is_vector ? Certainty::kLikely : Certainty::kUnknown,
            is_vector ? "a vector such as a norm, whole" : "use not known, whole on every rank"};
  }

  const ModelConfig* config_;
  const mesh::Mesh& mesh_;
  Kinds kinds_;
  Sublayers layers_;
  Order usual_ = Order::kOutIn;
  std::map<std::string, ProposedRule> rules_;
  std::map<std::string, int> input_axis_;  ///< by form of a weight
  std::set<std::string> unknown_;          ///< forms of tensors in attention without a known use
  std::map<std::tuple<i64, i64, i64, std::string>, HeadAxes> head_axes_;
  Proposal result_;
};

}  // namespace

std::string_view to_string(Certainty certainty) {
  switch (certainty) {
    case Certainty::kSure:
      return "sure";
    case Certainty::kLikely:
      return "likely";
    case Certainty::kGuess:
      return "guess";
    case Certainty::kUnknown:
      break;
  }
  return "unknown";
}

Proposal propose(const ModelConfig* config, std::span<const TensorSpec> tensors,
                 const mesh::Mesh& mesh) {
  return Proposer(config, tensors, mesh).run();
}

}  // namespace shardtool::mapping
