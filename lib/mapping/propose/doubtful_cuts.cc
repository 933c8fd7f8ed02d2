#include "lib/mapping/propose/doubtful_cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lib/mapping/document/name_form.h"
#include "lib/mapping/propose/head_counts.h"
#include "lib/mapping/propose/kinds.h"
#include "lib/mapping/propose/sublayers.h"

namespace shardtool::mapping {
namespace {

using layout::AxisExpr;

/// The cut of all tensors of one form.
struct CutKind {
  const TensorKind* kind = nullptr;
  const ResolvedTensor* resolved = nullptr;
  std::string tensor;
  size_t axis = 0;  ///< the only axis that is cut

  const AxisExpr& expr() const { return resolved->layout->axes()[axis].expr; }
  i64 extent() const { return kind->shape()[axis]; }
  /// One index of the axis that is cut.
  std::string_view line() const {
    return axis > 0 && axis + 1 == kind->shape().size() ? "column" : "row";
  }
};

/// Number of rows that stay together: 8 of Scale(Split(12, tp), 8); 1 of Split(96, tp).
i64 unit_of(const AxisExpr& expr) {
  const auto* scaled = std::get_if<layout::Scale>(&expr.node());
  return scaled == nullptr ? 1 : scaled->unit * unit_of(*scaled->of);
}

/// Innermost group of rows: the size of a head, if the axis is cut in heads.
i64 head_size(const AxisExpr& expr) {
  const auto* scaled = std::get_if<layout::Scale>(&expr.node());
  return scaled == nullptr ? 1 : scaled->unit;
}

bool has_sections(const AxisExpr& expr) {
  if (std::holds_alternative<layout::Concat>(expr.node())) return true;
  if (const auto* scaled = std::get_if<layout::Scale>(&expr.node()))
    return has_sections(*scaled->of);
  if (const auto* nested = std::get_if<layout::Nest>(&expr.node()))
    return has_sections(*nested->of);
  const auto* product = std::get_if<layout::Product>(&expr.node());
  return product != nullptr && has_sections(*product->inner);
}

/// Returns a tensor's name without its last word, and without "weight".
std::string_view module_of(std::string_view name) {
  if (name.ends_with(".weight")) name.remove_suffix(std::string_view(".weight").size());
  return name.substr(0, name.rfind('.'));
}

bool is_users(const ResolvedTensor& tensor) {
  const std::string& rule = tensor.by->rule;
  return rule != "unknown" && !rule.starts_with("preset:") && !rule.starts_with("layout:") &&
         !tensor.by->rule_place.pointer.empty() &&
         !tensor.by->rule_place.file.starts_with("preset:");
}

class Doubts {
 public:
  Doubts(const Resolution& resolution, std::span<const TensorSpec> tensors,
         const ModelConfig* config)
      : config_(config), kinds_(kinds_of(tensors)), layers_(find_sublayers(kinds_)) {
    for (const ResolvedTensor& resolved : resolution.tensors)
      add(resolved, tensors[resolved.tensor]);
  }

  std::vector<DoubtfulCut> run() && {
    for (const AttentionKinds& attention : layers_.attentions) check_attention(attention);
    for (const MlpKinds& mlp : layers_.mlps) check_mlp(mlp);
    for (const auto& [form, cut] : cuts_) check_name(cut);
    for (const auto& [form, cut] : cuts_) check_neighbours(cut);
    std::sort(found_.begin(), found_.end(),
              [](const DoubtfulCut& a, const DoubtfulCut& b) { return a.tensor < b.tensor; });
    return std::move(found_);
  }

 private:
  /// Remembers the first tensor of each form that a user's rule cuts along one axis.
  void add(const ResolvedTensor& resolved, const TensorSpec& spec) {
    if (!is_users(resolved)) return;
    std::vector<size_t> cut;
    for (size_t a = 0; a < resolved.layout->axes().size(); ++a) {
      if (resolved.layout->axes()[a].expr.is_sharded()) cut.push_back(a);
    }
    const TensorKind& kind = kinds_.at(name_form(spec.name));
    // An axis of experts may be cut beside the other.
    if (spec.shape.size() == 3 && cut.size() == 2 && cut.front() == 0) cut.erase(cut.begin());
    if (cut.size() != 1 || kind.is_bias || !kind.has_one_shape()) return;
    cuts_.try_emplace(kind.form, CutKind{&kind, &resolved, spec.name, cut.front()});
  }

  const CutKind* cut_of(const TensorKind& kind) const {
    const auto found = cuts_.find(kind.form);
    return found == cuts_.end() ? nullptr : &found->second;
  }

  void report(const CutKind& cut, std::string message, std::string fix) {
    if (!told_.insert(cut.kind->form).second) return;
    found_.push_back({cut.tensor, cut.kind->tensors, cut.resolved->by->rule,
                      cut.resolved->by->rule_place, std::move(message), std::move(fix)});
  }

  /// Returns true if every rank has whole groups of `unit` rows, and whole groups are `parts` runs.
  static bool keeps(const AxisExpr& expr, i64 unit) {
    return has_sections(expr) || (unit > 1 && unit_of(expr) > 1 && unit_of(expr) % unit == 0);
  }

  static std::string name_of(const CutKind& cut) {
    return cut.kind->tensors == 1
               ? fmt::format("'{}'", cut.tensor)
               : fmt::format("'{}' ({} tensors)", cut.kind->form, cut.kind->tensors);
  }

  static std::string rule_text(const CutKind& cut, const std::string& strategy) {
    return fmt::format(R"(write {{"match": "{}", "strategy": {{{}}}}})", cut.kind->form, strategy);
  }

  void report_fused(const CutKind& cut, std::string_view holds, const std::string& strategy) {
    report(cut,
           fmt::format("{} looks like {} in one tensor, and rule {} cuts its {} {}s as one matrix",
                       name_of(cut), holds, cut.resolved->by->rule, cut.extent(), cut.line()),
           rule_text(cut, strategy));
  }

  // Attention

  /// The widths that follow from the output projection, which may be stored [out, in] or [in, out].
  std::optional<HeadCounts> counts_of(const AttentionKinds& attention) const {
    const TensorKind& out = *attention.out;
    if (out.shape().size() != 2 || !out.has_one_shape()) return std::nullopt;
    for (const i64 query : {out.shape()[1], out.shape()[0]}) {
      const auto widths = widths_of(attention, query);
      if (!widths) continue;
      const auto counts = find_head_counts(config_, out.form, *widths);
      if (counts && counts->is_stated) return counts;
    }
    return std::nullopt;
  }

  /// Extent of the axis that is cut; of a whole tensor the first one.
  i64 rows_of(const TensorKind& kind) const {
    const CutKind* cut = cut_of(kind);
    return cut == nullptr ? kind.shape()[0] : cut->extent();
  }

  std::optional<AttentionWidths> widths_of(const AttentionKinds& attention, i64 query) const {
    if (attention.find(Role::kLatentKeyValue) != nullptr) return std::nullopt;
    AttentionWidths widths{query, 0, 0};
    if (const TensorKind* fused = attention.find(Role::kQueryKeyValue)) {
      const i64 rows = std::max(fused->shape().front(), fused->shape().back());
      const i64 rest = rows - query;
      if (rest <= 0 || rest % 2 != 0 || rest / 2 > query) return std::nullopt;
      widths.key = rest / 2;
    } else if (const TensorKind* pair = attention.find(Role::kKeyValue)) {
      widths.key = rows_of(*pair) / 2;
    } else if (const TensorKind* key = attention.find(Role::kKey)) {
      widths.key = rows_of(*key);
    }
    return widths;
  }

  void check_attention(const AttentionKinds& attention) {
    const auto counts = counts_of(attention);
    std::vector<const TensorKind*> members = attention.in;
    members.push_back(attention.out);
    if (!counts) return compare_heads(members);
    for (const TensorKind* kind : members) {
      const CutKind* cut = cut_of(*kind);
      if (cut == nullptr) continue;
      if (kind->role == Role::kQueryKeyValue)
        check_fused(*cut, *counts);
      else if (kind->role == Role::kKeyValue)
        check_pair(*cut, *counts);
      else
        check_heads(*cut, *counts);
    }
  }

  void check_fused(const CutKind& cut, const HeadCounts& counts) {
    const i64 dim = counts.head_dim.value;
    const i64 group = counts.heads.value / counts.kv_heads.value + 2;
    if (cut.extent() != (counts.heads.value + 2 * counts.kv_heads.value) * dim) return;
    const auto sizes = fmt::format(R"("num_heads": {}, "num_kv_heads": {}, "head_dim": {})",
                                   counts.heads.value, counts.kv_heads.value, dim);
    if (knows_heads(cut)) {
      // Sections are cut head by head; otherwise a group of heads stands in one piece.
      const i64 unit = has_sections(cut.expr()) ? dim : group * dim;
      return report_inside(cut, unit, heads_text(counts, counts.heads), "say " + sizes);
    }
    if (keeps(cut.expr(), group * dim)) return;
    report_fused(cut, "q, k and v",
                 fmt::format(R"("type": "stacked_qkv", {}{})", axis_text(cut), sizes));
  }

  void check_pair(const CutKind& cut, const HeadCounts& counts) {
    const i64 dim = counts.head_dim.value;
    if (cut.extent() != 2 * counts.kv_heads.value * dim) return;
    const auto sizes =
        fmt::format(R"("num_heads": {}, "head_dim": {})", counts.kv_heads.value, dim);
    if (knows_heads(cut))
      return report_inside(cut, dim, heads_text(counts, counts.kv_heads), "say " + sizes);
    if (keeps(cut.expr(), 2 * dim)) return;
    const std::string heads = "{" + sizes + "}";
    report_fused(cut, "k and v",
                 fmt::format(R"("type": "segmented", {}"segments": [{}, {}])", axis_text(cut),
                             heads, heads));
  }

  static std::string axis_text(const CutKind& cut) {
    return cut.axis == 0 ? "" : fmt::format("\"axis\": {}, ", cut.axis);
  }

  /// Compares a cut of heads with config.json: other sizes, or a cut inside a head.
  void check_heads(const CutKind& cut, const HeadCounts& counts) {
    const i64 dim = counts.head_dim.value;
    const bool is_key = cut.kind->role == Role::kKey || cut.kind->role == Role::kValue;
    const ConfigNumber& heads = is_key ? counts.kv_heads : counts.heads;
    if (cut.extent() != heads.value * dim || has_sections(cut.expr())) return;
    const i64 own = head_size(cut.expr());
    const std::string fix =
        rule_text(cut, fmt::format(R"("type": "head_aware_{}", "num_heads": {}, "head_dim": {})",
                                   cut.axis == 0 ? "rowwise" : "columnwise", heads.value, dim));
    if (own > 1 && states_other_heads(config_, cut.extent() / own)) return;
    if (own > 1 && own != dim) {
      report(cut,
             fmt::format("rule {} cuts {} in {} heads of {}, but the model has {}",
                         cut.resolved->by->rule, name_of(cut), cut.extent() / own, own,
                         heads_text(counts, heads)),
             fix);
    } else {
      report_inside(cut, dim, heads_text(counts, heads), fix);
    }
  }

  static std::string heads_text(const HeadCounts& counts, const ConfigNumber& heads) {
    return fmt::format("{} heads of {} (config.{})", heads.value, counts.head_dim.value,
                       heads.path.empty() ? counts.heads.path : heads.path);
  }

  /// Reports a cut whose pieces are not whole units of `unit` rows.
  void report_inside(const CutKind& cut, i64 unit, const std::string& heads, std::string fix) {
    const auto inside = cut_inside(cut, unit);
    if (!inside) return;
    report(cut,
           fmt::format("rule {} cuts {} at {} {}, inside a head: the model has {}",
                       cut.resolved->by->rule, name_of(cut), cut.line(), *inside, heads),
           std::move(fix));
  }

  /// True if a rule cuts a fused tensor in q, k and v, or in groups of heads, of some size.
  static bool knows_heads(const CutKind& cut) {
    return has_sections(cut.expr()) || cut.resolved->by->strategy == "stacked_qkv";
  }

  /// Returns the first row at which a piece begins or ends inside a unit.
  static std::optional<i64> cut_inside(const CutKind& cut, i64 unit) {
    const layout::Layout& layout = *cut.resolved->layout;
    for (const i64 rank : layout.ranks()) {
      const auto region = layout.region(rank);
      if (!region) continue;
      for (const index::Piece& piece : (*region)[cut.axis].pieces()) {
        if (piece.global % unit != 0) return piece.global;
        if (piece.global_end() % unit != 0) return piece.global_end();
      }
    }
    return std::nullopt;
  }

  /// Compares the heads of tensors of one layer with each other, where config.json says nothing.
  void compare_heads(const std::vector<const TensorKind*>& members) {
    const CutKind* first = nullptr;
    for (const TensorKind* kind : members) {
      const CutKind* cut = cut_of(*kind);
      if (cut == nullptr || head_size(cut->expr()) == 1 || has_sections(cut->expr())) continue;
      if (first == nullptr) first = cut;
      const i64 own = head_size(cut->expr());
      const i64 other = head_size(first->expr());
      const i64 count = cut->extent() / own;
      const i64 other_count = first->extent() / other;
      const bool divides = own % other == 0 || other % own == 0;
      if (divides || count == other_count || module_of(cut->tensor) != module_of(first->tensor))
        continue;
      report(*cut,
             fmt::format("rule {} cuts {} in {} heads of {}, and rule {} cuts '{}' beside it in "
                         "{} heads of {}",
                         cut->resolved->by->rule, name_of(*cut), count, own,
                         first->resolved->by->rule, first->kind->form, other_count, other),
             "heads of one layer have one size: correct num_heads or head_dim of one of the rules");
    }
  }

  // Other fused tensors

  /// An input of twice the width that the output takes.
  void check_mlp(const MlpKinds& mlp) {
    const Shape& out = mlp.out->shape();
    if (mlp.in.size() != 1 || out.size() < 2) return;
    const CutKind* cut = cut_of(*mlp.in.front());
    if (cut == nullptr || keeps(cut->expr(), 2) || cut->kind->shape().size() != out.size()) return;
    const size_t other = out.size() - 1 + out.size() - 2 - cut->axis;
    if (cut->axis + 2 < out.size() || cut->extent() != 2 * out[other]) return;
    report_fused(*cut, "gate and up", fmt::format(R"("type": "gate_up", "axis": {})", cut->axis));
  }

  /// A name such as qkv_proj or w13, where nothing beside it tells the sizes.
  void check_name(const CutKind& cut) {
    const int parts = fused_parts(*cut.kind);
    const bool is_inner = cut.axis + 2 >= cut.kind->shape().size();
    if (parts == 0 || !is_inner || cut.extent() % parts != 0 || keeps(cut.expr(), parts)) return;
    const Shape& shape = cut.kind->shape();
    if (cut.extent() < *std::max_element(shape.end() - 2, shape.end())) return;  // its input
    if (cut.kind->role == Role::kGateUp) {
      return report_fused(cut, "gate and up",
                          fmt::format(R"("type": "gate_up", "axis": {})", cut.axis));
    }
    report_fused(cut, to_string(cut.kind->role).substr(6),
                 fmt::format(R"("type": "gate_up", "axis": {}, "parts": {})", cut.axis, parts));
  }

  /// A tensor with two or three times the rows that a tensor beside it takes, and that none takes.
  void check_neighbours(const CutKind& cut) {
    const TensorKind& kind = *cut.kind;
    const bool is_named = kind.role != Role::kUnknown && kind.role != Role::kUp;
    if (kind.shape().size() != 2 || kind.block.empty() || is_named) return;
    std::set<i64> taken;
    for (const auto& [form, other] : kinds_) {
      const bool beside = other.block == kind.block && other.group == kind.group;
      if (!beside || &other == &kind || other.is_bias || other.shape().size() != 2) continue;
      taken.insert(other.shape()[1 - cut.axis]);
      if (other.shape()[cut.axis] == cut.extent()) return;  // one of several alike
    }
    if (taken.contains(cut.extent())) return;
    for (const int parts : {3, 2}) {
      if (cut.extent() % parts != 0 || !taken.contains(cut.extent() / parts)) continue;
      if (keeps(cut.expr(), parts)) return;
      return report_fused(
          cut, parts == 3 ? "three matrices" : "two matrices",
          fmt::format(R"("type": "gate_up", "axis": {}, "parts": {})", cut.axis, parts));
    }
  }

  const ModelConfig* config_;
  std::map<std::string, TensorKind> kinds_;
  Sublayers layers_;
  std::map<std::string, CutKind> cuts_;  ///< by form
  std::set<std::string> told_;           ///< forms
  std::vector<DoubtfulCut> found_;
};

}  // namespace

std::vector<DoubtfulCut> doubtful_cuts(const Resolution& resolution,
                                       std::span<const TensorSpec> tensors,
                                       const ModelConfig* config) {
  return Doubts(resolution, tensors, config).run();
}

std::string to_string(const DoubtfulCut& cut) {
  return cut.message + "; " + cut.fix;
}

}  // namespace shardtool::mapping
