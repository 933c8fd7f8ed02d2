#include "lib/api/catalogue/graph_skeleton.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/propose/head_counts.h"
#include "lib/mapping/propose/propose.h"
#include "lib/mapping/propose/sublayers.h"

namespace shardtool::api {
namespace {

using mapping::ProposedRule;
using mapping::Role;
using mapping::TensorKind;
using nlohmann::json;
using Kinds = std::map<std::string, TensorKind>;

/// A weight with the part that it has in a layer.
struct Weight {
  const TensorKind* kind = nullptr;
  bool is_transposed = false;  ///< stored [in, out]
  i64 rows = 0;                ///< output features
};

Error missing(const std::string& what, const std::string& found) {
  return Error(ErrorCode::kUnsupported, "no graph can be started for this model: " + what)
      .note("found", found)
      .help(
          "start from the nearest built-in graph: `shardtool graphs` lists them, `shardtool "
          "graphs show NAME` prints one, and shardtool-graph(5) has the language");
}

std::string json_text(std::string_view text) {
  return json(text).dump();
}

/// A number of the graph, and its origin for the description.
struct Number {
  std::string json;
  std::string source;
};

constexpr std::array<std::string_view, 7> kEpsKeys{
    "rms_norm_eps",      "norm_eps",     "layer_norm_eps",  "layer_norm_epsilon",
    "layernorm_epsilon", "norm_epsilon", "rms_norm_epsilon"};
constexpr std::array<std::string_view, 3> kThetaKeys{"rope_parameters.rope_theta", "rope_theta",
                                                     "rotary_emb_base"};

/// Refers to the first of the keys that config.json has, with `otherwise` as the default.
Number number_of(const mapping::ModelConfig* config, std::span<const std::string_view> keys,
                 const char* otherwise) {
  for (const std::string_view key : keys) {
    const json* found = config == nullptr ? nullptr : config->find(key);
    if (found == nullptr || !found->is_number()) continue;
    return {fmt::format(R"({{"config": {}, "default": {}}})", json_text(key), otherwise),
            fmt::format("{} ({} of config.json)", found->dump(), key)};
  }
  return {otherwise, fmt::format("{} (assumed)", otherwise)};
}

/// Writes the text of a graph from the kinds and proposed rules of a model.
class Skeleton {
 public:
  Skeleton(const mapping::ModelConfig* config, std::span<const TensorSpec> tensors)
      : kinds_(mapping::kinds_of(tensors)),
        proposal_(mapping::propose(config, tensors, mesh::Mesh({{"tp", 1}}))) {
    for (const ProposedRule& rule : proposal_.rules) rules_[rule.form] = &rule;
    find_block(tensors);
    find_sizes(config == nullptr);
  }

  std::string text(const mapping::ModelConfig* config) {
    eps_ = number_of(config, kEpsKeys, "1e-06");
    theta_ = number_of(config, kThetaKeys, "10000.0");
    const std::string attention = attention_ops();
    const std::string mlp = mlp_ops();
    const std::string first = start();
    const std::string last = end();
    const std::string type = config == nullptr ? "" : config->model_type();
    return fmt::format(
        "{{\n  \"version\": 1,\n  \"family\": {},\n  \"description\": {},\n"
        "  \"source\": \"names and shapes of the tensors; not read from the model's code\",\n"
        "  \"model_types\": [{}],\n  \"prefix\": {{\"layer\": {}}},\n  \"sizes\": {{{}}},\n"
        "  \"numbers\": {{\"eps\": {}, \"theta\": {}}},\n"
        "  \"parts\": {{\n    \"attention\": [\n{}\n    ],\n    \"mlp\": [\n{}\n    ]\n  }},\n"
        "  \"start\": [{}],\n"
        "  \"blocks\": [{{\"name\": \"decoder\", \"ops\": [\"attention\", \"mlp\"]}}],\n"
        "  \"end\": [\n{}\n  ]\n}}\n",
        json_text(type.empty() ? "mine" : type),
        json_text(description() + left_out(attention + mlp + first + last)),
        type.empty() ? "" : json_text(type), json_text(name_of_block()), sizes(), eps_.json,
        theta_.json, attention, mlp, first, last);
  }

 private:
  bool is_cut(const TensorKind& kind) const {
    const auto rule = rules_.find(kind.form);
    return rule != rules_.end() && !rule->second->dims.empty();
  }

  const TensorKind* with_role(Role role) const {
    for (const auto& [form, kind] : kinds_) {
      if (!kind.is_bias && is_cut(kind) && kind.block == block_ && kind.role == role) return &kind;
    }
    return nullptr;
  }

  /// The block with most tensors is the model's layers.
  void find_block(std::span<const TensorSpec> tensors) {
    std::map<std::string, i64> counts;
    for (const auto& [form, kind] : kinds_) {
      if (kind.role == Role::kOut || kind.role == Role::kOutOrDown || kind.role == Role::kDown)
        ++counts[kind.block];
    }
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    if (most == counts.end() || most->first.empty())
      throw missing("no layers with attention and MLP weights are recognised",
                    fmt::format("{} tensors", tensors.size()));
    block_ = most->first;
  }

  Weight weight(const TensorKind& kind, bool is_output) const {
    const auto& dims = rules_.at(kind.form)->dims;
    const bool first = !dims.front().empty();
    const Shape& shape = kind.shape();
    const bool transposed = first == is_output;  // an output's input features are cut
    return {&kind, transposed, transposed ? shape[1] : shape[0]};
  }

  Weight require(Role role, std::string_view what) const {
    const TensorKind* kind = with_role(role);
    if (kind != nullptr && kind->shape().size() == 2) return weight(*kind, false);
    throw unrecognised(what);
  }

  /// The output projection of the layers' attention, or of their MLP.
  template <class Sublayer>
  Weight output_of(const std::vector<Sublayer>& sublayers, std::string_view what) const {
    for (const Sublayer& found : sublayers) {
      const TensorKind& out = *found.out;
      if (out.block == block_ && is_cut(out) && out.shape().size() == 2) return weight(out, true);
    }
    throw unrecognised(what);
  }

  Error unrecognised(std::string_view what) const {
    std::vector<std::string> names;
    for (const auto& [form, kind] : kinds_) {
      if (kind.block == block_) names.push_back(form);
    }
    return missing(fmt::format("its layers have no {} that is recognised", what),
                   quote_for_message(fmt::format("{}", fmt::join(names, ", ")), 300));
  }

  void find_sizes(bool lacks_config) {
    const mapping::Sublayers layers = mapping::find_sublayers(kinds_);
    // Attention is cut by its heads, so that no projection is recognised where these are unknown.
    if (!layers.attentions.empty() && !proposal_.axes.contains("heads"))
      throw missing("the number of heads is not known",
                    lacks_config ? "no config.json beside the weights"
                                 : "no number of heads in config.json that fits the weights");
    out_ = output_of(layers.attentions, "attention output projection");
    down_ = output_of(layers.mlps, "MLP output projection");
    embed_ = out_.rows;
    mlp_ = down_.is_transposed ? down_.kind->shape()[0] : down_.kind->shape()[1];
    for (const auto& [form, kind] : kinds_) {
      if (!kind.block.empty() || kind.is_bias || kind.shape().size() != 2) continue;
      if (kind.shape()[1] != embed_ || !rules_.contains(form) || rules_[form]->dims.empty())
        continue;
      tables_.push_back(&kind);
    }
    const auto is_head = [](const TensorKind* kind) {
      return kind->form.find("head") != std::string::npos ||
             kind->form.find("out") != std::string::npos;
    };
    std::stable_sort(tables_.begin(), tables_.end(), [&](const TensorKind* a, const TensorKind* b) {
      return is_head(a) < is_head(b);
    });
    if (tables_.empty()) throw missing("no embedding of the vocabulary is recognised", "none");
  }

  std::string name_of_block() const {
    std::string name = block_;
    const size_t number = name.rfind('*');
    name.replace(number, 1, "<layer>");
    return name + ".";
  }

  std::string name_in_layer(const std::string& form) const {
    return "layer/" + form.substr(block_.size() + 1);
  }

  std::string description() const {
    std::string assumed = fmt::format(
        "a start: check with the model's code that norms come before attention and MLP "
        "and are RMS norms with eps {}, that positions rotate halves with theta {}, and "
        "that the activation is SiLU",
        eps_.source, theta_.source);
    if (with_role(Role::kQueryKeyValue) != nullptr || with_role(Role::kGateUp) != nullptr)
      assumed += ", and the order inside fused tensors";
    return assumed;
  }

  /// Lists the tensors of the layers and around them that the ops do not read.
  std::string left_out(const std::string& ops) const {
    std::vector<std::string> names;
    for (const auto& [form, kind] : kinds_) {
      if (!kind.block.empty() && kind.block != block_) continue;
      const std::string name = kind.block.empty() ? form : name_in_layer(form);
      if (ops.find(json_text(name)) == std::string::npos) names.push_back(name);
    }
    if (names.empty()) return "";
    return fmt::format("; these tensors have no part in it yet: {}", fmt::join(names, ", "));
  }

  std::string sizes() const {
    const auto axis = [&](const std::string& name) {
      const auto found = proposal_.axes.find(name);
      return found == proposal_.axes.end() ? json() : json::parse(found->second)["size"];
    };
    const json heads = axis("heads");
    const bool grouped = proposal_.axes.contains("kv_heads");
    return fmt::format(
        R"("layers": {}, "vocab": {}, "embed": {}, "heads": {}, "kv_heads": {}, "head_dim": {}, "mlp": {})",
        down_.kind->tensors, tables_.front()->shape()[0], embed_, heads.dump(),
        grouped ? axis("kv_heads").dump() : heads.dump(), axis("head_dim").dump(), mlp_);
  }

  /// A linear op; `rows` and `columns` are formulas.
  std::string linear(const Weight& weight, std::string_view in, std::string_view out,
                     std::string_view rows, std::string_view columns) const {
    const TensorKind* bias = nullptr;
    for (const auto& [form, kind] : kinds_) {
      if (kind.is_bias && kind.path == weight.kind->path) bias = &kind;
    }
    return fmt::format(
        R"(      {{"op": "linear", "in": "{}", "out": "{}", "weight": {}, {}{}"rows": "{}", "columns": "{}"}})",
        in, out, json_text(name_in_layer(weight.kind->form)),
        bias == nullptr ? "" : fmt::format("\"bias\": {}, ", json_text(name_in_layer(bias->form))),
        weight.is_transposed ? R"("kernel": "in_out", )" : "", rows, columns);
  }

  /// The norms of a layer, in the order attention, MLP.
  std::vector<const TensorKind*> layer_norms() const {
    std::vector<const TensorKind*> norms;
    for (const auto& [form, kind] : kinds_) {
      const bool is_norm = kind.block == block_ && !kind.is_bias && kind.role == Role::kUnknown &&
                           kind.shape() == Shape{embed_};
      if (is_norm) norms.push_back(&kind);
    }
    const auto place = [](const TensorKind* kind) {
      for (const std::string_view word : {"mlp", "ffn", "ff", "post", "feed", "2"}) {
        if (kind->form.find(word) != std::string::npos) return 1;
      }
      return 0;
    };
    std::stable_sort(norms.begin(), norms.end(),
                     [&](const TensorKind* a, const TensorKind* b) { return place(a) < place(b); });
    return norms;
  }

  std::string norm(std::string_view in, std::string_view out, size_t which) const {
    const auto norms = layer_norms();
    if (norms.size() != 2)
      throw missing(
          fmt::format("a layer has {} norms over {} features, not 2", norms.size(), embed_),
          block_);
    return fmt::format(
        R"(      {{"op": "norm", "kind": "rms", "in": "{}", "out": "{}", "weight": {}, "size": "embed", "eps": "eps"}})",
        in, out, json_text(name_in_layer(norms[which]->form)));
  }

  std::string attention_ops() const {
    std::vector<std::string> ops = {norm("x", "h", 0)};
    const std::string kv = "kv_heads*head_dim";
    const TensorKind* fused = with_role(Role::kQueryKeyValue);
    if (fused != nullptr) {
      const std::string rows = "heads*head_dim + " + kv + " + " + kv;
      ops.push_back(linear(weight(*fused, false), "h", "qkv", rows, "embed"));
      ops.push_back(fmt::format(
          R"(      {{"op": "split", "in": "qkv", "out": ["q", "k", "v"], "sections": ["heads*head_dim", "{}", "{}"], "order": "concat"}})",
          kv, kv));
    } else {
      ops.push_back(
          linear(require(Role::kQuery, "query projection"), "h", "q", "heads*head_dim", "embed"));
      ops.push_back(linear(require(Role::kKey, "key projection"), "h", "k", kv, "embed"));
      ops.push_back(linear(require(Role::kValue, "value projection"), "h", "v", kv, "embed"));
    }
    for (const std::string_view name : {"q", "k"}) {
      ops.push_back(fmt::format(
          R"(      {{"op": "rope", "in": "{}", "out": "{}_at", "style": "half", "head": "head_dim", "theta": "theta"}})",
          name, name));
    }
    ops.emplace_back(
        R"(      {"op": "attention", "in": ["q_at", "k_at", "v"], "out": "context", "heads": "heads", "kv_heads": "kv_heads", "key_dim": "head_dim", "value_dim": "head_dim", "scale_of": "head_dim", "mask": "causal"})");
    ops.push_back(linear(out_, "context", "attended", "embed", "heads*head_dim"));
    ops.emplace_back(R"(      {"op": "add", "in": ["x", "attended"], "out": "y"})");
    return fmt::format("{}", fmt::join(ops, ",\n"));
  }

  /// All kUp weights, the gate first.
  std::vector<Weight> inputs() const {
    std::vector<const TensorKind*> found;
    for (const auto& [form, kind] : kinds_) {
      const bool is_input = kind.role == Role::kUp || kind.role == Role::kGateOrRoute;
      if (is_input && !kind.is_bias && kind.block == block_ && !rules_.at(form)->dims.empty())
        found.push_back(&kind);
    }
    const auto is_up = [](const TensorKind* kind) {
      const std::string& name = kind->path.back();
      return name.find("up") != std::string::npos || name.find('3') != std::string::npos;
    };
    std::stable_sort(found.begin(), found.end(),
                     [&](const TensorKind* a, const TensorKind* b) { return is_up(a) < is_up(b); });
    std::vector<Weight> weights;
    for (const TensorKind* kind : found) weights.push_back(weight(*kind, false));
    return weights;
  }

  std::string mlp_ops() const {
    std::vector<std::string> ops = {norm("y", "m", 1)};
    const auto up = inputs();
    const TensorKind* fused = with_role(Role::kGateUp);
    if (fused != nullptr) {
      ops.push_back(linear(weight(*fused, false), "m", "both", "mlp + mlp", "embed"));
      ops.emplace_back(
          R"(      {"op": "split", "in": "both", "out": ["gate", "up"], "sections": ["mlp", "mlp"], "order": "concat"})");
    } else if (up.size() == 2) {
      ops.push_back(linear(up[0], "m", "gate", "mlp", "embed"));
      ops.push_back(linear(up[1], "m", "up", "mlp", "embed"));
    } else if (up.size() == 1) {
      ops.push_back(linear(up[0], "m", "gate", "mlp", "embed"));
    } else {
      throw missing(fmt::format("an MLP with {} input projections", up.size()), block_);
    }
    const bool is_gated = fused != nullptr || up.size() == 2;
    ops.push_back(fmt::format(
        R"(      {{"op": "act", "in": "gate", "out": "{}", "kind": {{"config": "hidden_act", "default": "silu"}}}})",
        is_gated ? "gated" : "product"));
    if (is_gated)
      ops.emplace_back(R"(      {"op": "mul", "in": ["gated", "up"], "out": "product"})");
    ops.push_back(linear(down_, "product", "fed", "embed", "mlp"));
    ops.emplace_back(R"(      {"op": "add", "in": ["y", "fed"], "out": "x"})");
    return fmt::format("{}", fmt::join(ops, ",\n"));
  }

  std::string start() const {
    return fmt::format(
        R"({{"op": "embed", "out": "x", "table": {}, "rows": "vocab", "size": "embed"}})",
        json_text(tables_.front()->form));
  }

  std::string end() const {
    std::string text;
    std::string from = "x";
    for (const auto& [form, kind] : kinds_) {
      if (!kind.block.empty() || kind.is_bias || kind.shape() != Shape{embed_}) continue;
      text = fmt::format(
          "    {{\"op\": \"norm\", \"kind\": \"rms\", \"in\": \"x\", \"out\": \"f\", \"weight\": "
          "{}, "
          "\"size\": \"embed\", \"eps\": \"eps\"}},\n",
          json_text(form));
      from = "f";
      break;
    }
    return text + fmt::format(
                      "    {{\"op\": \"logits\", \"in\": \"{}\", \"out\": \"logits\", "
                      "\"weight\": {}, \"rows\": \"vocab\", \"columns\": \"embed\"}}",
                      from, json_text(tables_.back()->form));
  }

  Kinds kinds_;
  mapping::Proposal proposal_;
  std::map<std::string, const ProposedRule*> rules_;
  std::string block_;
  Weight out_, down_;
  std::vector<const TensorKind*> tables_;  ///< embedding first, head last
  i64 embed_ = 0;
  i64 mlp_ = 0;
  Number eps_, theta_;
};

}  // namespace

std::string graph_skeleton(const std::string& source) {
  const LogicalCheckpoint checkpoint = open_logical({source});
  const auto config = checkpoint.config();
  const mapping::ModelConfig* known = config ? &*config : nullptr;
  return Skeleton(known, checkpoint.specs()).text(known);
}

}  // namespace shardtool::api
