#include "lib/mapping/resolve/axis_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "lib/base/text.h"
#include "lib/layout/head_groups.h"

namespace shardtool::mapping {
namespace {

using layout::AxisExpr;
using layout::SmallPolicy;

/// Sets the nearer document's field to the farther one's if it is absent.
template <class T>
void inherit(std::optional<T>& nearer, const std::optional<T>& farther) {
  if (!nearer) nearer = farther;
}

/// Drops the fields of a farther document that contradict the nearer one's.
AxisSpec without_contradictions(const AxisSpec& nearer, AxisSpec farther) {
  if (nearer.owners) farther.small.reset();
  if (nearer.small) farther.owners.reset();
  if (nearer.uneven.value_or(Uneven::kPad) != Uneven::kPad) {
    farther.pad_to.reset();
    farther.padding.reset();
  }
  return farther;
}

layout::SplitRule rule_of(const AxisSpec& spec) {
  return split_rule(spec.uneven.value_or(Uneven::kBalanced), spec.pad_to.value_or(1));
}

/// Returns true if units are dealt to devices in another way than in consecutive runs.
bool has_owners(const AxisSpec& spec) {
  return spec.owners && spec.owners->kind != OwnersSpec::Kind::kContiguous;
}

/// The usual name of the axis under which query heads are grouped. Messages then use the default
/// names.
constexpr std::string_view kKvHeads = "kv_heads";

/// Replaces underscores: "linear_k_heads" -> "linear k heads".
std::string words_of(std::string axis) {
  std::replace(axis.begin(), axis.end(), '_', ' ');
  return axis;
}

/// Number of query heads per KV head. Throws kGroups unless it is whole.
i64 units_per_group(const layout::HeadCounts& counts) {
  if (counts.kv_heads > 0 && counts.heads % counts.kv_heads == 0)
    return counts.heads / counts.kv_heads;
  throw Error(ErrorCode::kGroups,
              fmt::format("{} {} are not a whole number of groups under {} {}", counts.heads,
                          counts.heads_name, counts.kv_heads, counts.kv_name));
}

/// Refuses combinations of fields that have no effect together.
void check_fields(const std::string& name, const AxisSpec& spec) {
  const auto refuse = [&](bool both, const std::string& what) {
    if (both)
      throw Error(ErrorCode::kMappingSchema, fmt::format("axis '{}' has {}", name, what))
          .at(spec.place);
  };
  const bool grouped = spec.groups.has_value();
  refuse(spec.pad_to && spec.uneven != Uneven::kPad, "\"pad_to\" without \"uneven\": \"pad\"");
  refuse(grouped && spec.small,
         fmt::format("\"groups\" and \"small\": give \"small\" to '{}'", spec.groups.value_or("")));
  refuse(grouped && spec.owners, "\"groups\" and \"owners\"");
  refuse(spec.small && spec.owners, "\"small\" and \"owners\"");
}

Error unknown_axis(const std::string& name, const std::vector<std::string>& known) {
  Error e(ErrorCode::kUnknownName, fmt::format("nothing defines the axis '{}'", name));
  const std::string hint = did_you_mean(name, known);
  if (!hint.empty()) return std::move(e.help(hint));
  return std::move(e.help(
      known.empty() ? "define it in \"axes\""
                    : fmt::format("define it in \"axes\", or name one of: {}",
                                  quote_for_message(fmt::format("{}", fmt::join(known, ", "))))));
}

Error unknown_layout(const std::string& name, const std::vector<std::string>& known) {
  Error e(ErrorCode::kUnknownName,
          fmt::format("'{}' is none of the mapping's layouts", quote_for_message(name)));
  e.note("layouts", known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
  if (known.empty()) e.help("a mapping file can have \"layouts\"; presets have none");
  const std::string hint = did_you_mean(name, known);
  if (!hint.empty()) e.help(hint);
  return e;
}

/// Calls `visit` for every logical axis that a rule names.
void for_each_axis(const Rule& rule, const std::function<void(const std::string&)>& visit) {
  for (const auto& [capture, axis] : rule.index) visit(axis);
  for (const auto& [axis, number] : rule.at) visit(axis);
  const auto* dims = std::get_if<std::vector<Dim>>(&rule.cut);
  if (dims == nullptr) return;
  for (const Dim& dim : *dims) {
    for_each_factor(dim, [&](const Factor& factor) { visit(factor.axis); });
  }
}

}  // namespace

layout::SplitRule split_rule(Uneven uneven, i64 pad_to) {
  switch (uneven) {
    case Uneven::kBalanced:
    case Uneven::kError:
      return layout::kBalanced;
    case Uneven::kMiddle:
      return layout::kMiddle;
    case Uneven::kChunk:
      return layout::kCeil;
    case Uneven::kPad:
      return layout::padded(pad_to);
  }
  throw Error(ErrorCode::kInternal, "unknown policy for uneven axes");
}

mesh::Over over_of(const MeshRef& ref, bool may_lack_axes, const mesh::Mesh& mesh) {
  mesh::Over over;
  for (const mesh::AxisRef& axis : ref.over) {
    if (may_lack_axes && !mesh.has_axis(axis.axis)) continue;
    try {
      extent(mesh, axis);
    } catch (Error& e) {
      throw e.at(ref.place);
    }
    over.push_back(axis);
  }
  return over;
}

AxisTable::AxisTable(const Mapping& mapping, const mesh::Mesh& mesh, const ModelConfig* config,
                     const std::string& layout)
    : mesh_(mesh), config_(config) {
  for (const Document& document : mapping.documents()) {
    for (const auto& [name, spec] : document.axes) merge(name, spec, document);
  }
  add_default_axes(mapping);
  if (!layout.empty()) apply_layout(mapping, layout);
  for (auto& [name, entry] : axes_) {
    if (entry.spec.mesh) entry.over = over_of(*entry.spec.mesh, entry.may_lack_axes, mesh_);
    check_fields(name, entry.spec);
  }
  check_groups();
}

void AxisTable::merge(const std::string& name, const AxisSpec& own, const Document& document) {
  const auto [at, is_new] =
      axes_.try_emplace(name, Entry{own, document.may_lack_axes, document.is_preset, {}, {}});
  if (is_new) return;
  AxisSpec& nearer = at->second.spec;
  const AxisSpec spec = without_contradictions(nearer, own);
  if (!nearer.mesh) at->second.may_lack_axes = document.may_lack_axes;
  if (!nearer.small) at->second.small_in_preset = document.is_preset;
  inherit(nearer.mesh, spec.mesh);
  inherit(nearer.size, spec.size);
  inherit(nearer.uneven, spec.uneven);
  inherit(nearer.pad_to, spec.pad_to);
  inherit(nearer.padding, spec.padding);
  inherit(nearer.small, spec.small);
  inherit(nearer.groups, spec.groups);
  inherit(nearer.owners, spec.owners);
  inherit(nearer.alone, spec.alone);
}

/// Adds the axes that rules name and no document defines, uncut, if a document says so.
void AxisTable::add_default_axes(const Mapping& mapping) {
  if (std::ranges::none_of(mapping.documents(), &Document::replicates_unknown_axes)) return;
  const auto add = [this](const std::string& axis) {
    if (!axis.empty()) axes_.try_emplace(axis);
  };
  for (const Document& document : mapping.documents()) {
    for (const auto* rules : {&document.overrides, &document.rules}) {
      for (const Rule& rule : *rules) for_each_axis(rule, add);
    }
  }
}

void AxisTable::apply_layout(const Mapping& mapping, const std::string& layout) {
  std::vector<std::string> known;
  for (const Document& document : mapping.documents()) {
    for (const auto& [name, axes] : document.layouts) known.push_back(name);
    const auto found = document.layouts.find(layout);
    if (found == document.layouts.end()) continue;
    for (const auto& [name, ref] : found->second) {
      require(name, ref.place);
      axes_.at(name).spec.mesh = ref;
      axes_.at(name).may_lack_axes = document.may_lack_axes;
    }
    return;
  }
  throw unknown_layout(layout, known);
}

void AxisTable::check_groups() const {
  for (const auto& [name, entry] : axes_) {
    if (!entry.spec.groups) continue;
    const std::string& group = *entry.spec.groups;
    require(group, entry.spec.place);
    const AxisSpec& shared = axes_.at(group).spec;
    if (entry.spec.uneven && shared.uneven && !(rule_of(entry.spec) == rule_of(shared))) {
      throw Error(ErrorCode::kGroups,
                  fmt::format("axis '{}' is cut in the groups of '{}', but the two have different "
                              "policies for uneven cuts",
                              name, group))
          .at(entry.spec.place)
          .help(fmt::format("leave \"uneven\" out of '{}', or make it that of '{}'", name, group));
    }
    if (entry.over == over(group)) continue;
    throw Error(
        ErrorCode::kGroups,
        fmt::format("axis '{}' is cut over {}, but it is grouped under '{}', which is cut over {}",
                    name, to_string(entry.over), group, to_string(over(group))))
        .at(entry.spec.place)
        .help(fmt::format("give '{}' and '{}' the same \"mesh\"", name, group));
  }
}

void AxisTable::require(const std::string& axis, const Place& named_at) const {
  if (has(axis)) return;
  std::vector<std::string> known;
  for (const auto& [name, entry] : axes_) known.push_back(name);
  throw unknown_axis(axis, known).at(named_at);
}

i64 AxisTable::evaluate_size(const SizeExpression& size) {
  try {
    return evaluate(size, {config_, [&](const std::string& axis) {
                             require(axis, size.place);
                             return required_size(axis, size.text);
                           }});
  } catch (Error& e) {
    if (!e.place()) e.at(size.place);
    throw;
  }
}

i64 AxisTable::required_size(const std::string& axis, const std::string& because_of) {
  if (const auto size = declared_size(axis)) return *size;
  throw Error(ErrorCode::kSizeExpression,
              fmt::format("'{}' needs the size of axis '{}', which has none", because_of, axis))
      .at(place(axis))
      .help(fmt::format("give '{}' a \"size\", such as \"config.num_attention_heads\"", axis));
}

std::optional<i64> AxisTable::declared_size(const std::string& axis) {
  Entry& entry = axes_.at(axis);
  if (entry.size || !entry.spec.size) return entry.size;
  const SizeChain::Link link = chain_.enter(axis, entry.spec.size->place);
  return entry.size = evaluate_size(*entry.spec.size);
}

std::optional<i64> AxisTable::size_if_given(const std::string& axis) {
  try {
    return declared_size(axis);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kSizeExpression || e.code() == ErrorCode::kConfig)
      return std::nullopt;
    throw;
  }
}

std::map<std::string, i64> AxisTable::known_sizes() const {
  std::map<std::string, i64> sizes;
  for (const auto& [name, entry] : axes_) {
    if (entry.size) sizes[name] = *entry.size;
  }
  return sizes;
}

std::string AxisTable::size_origin(const std::string& axis) const {
  const auto& size = axes_.at(axis).spec.size;
  return size ? config_values(*size, config_) : "";
}

bool AxisTable::is_alone(const std::string& axis) const {
  const auto found = axes_.find(axis);
  return found != axes_.end() && found->second.spec.alone.value_or(false);
}

bool AxisTable::is_cut(const std::string& axis, const Rule& rule) const {
  const mesh::Over& mine = over(axis);
  if (mine.empty() || is_alone(axis)) return !mine.empty();
  bool is_taken = false;
  for_each_axis(rule, [&](const std::string& other) {
    is_taken |= is_alone(other) && std::ranges::any_of(over(other), [&](const auto& taken) {
                  return std::ranges::any_of(
                      mine, [&](const auto& ref) { return mesh::overlaps(mesh_, taken, ref); });
                });
  });
  return !is_taken;
}

std::string AxisTable::grouped_by(const std::string& axis) const {
  for (const auto& [name, entry] : axes_) {
    if (entry.spec.groups == axis) return name;
  }
  return {};
}

AxisExpr AxisTable::owned_units(const std::string& axis, i64 n) const {
  const Entry& entry = axes_.at(axis);
  const OwnersSpec& spec = *entry.spec.owners;
  if (spec.kind == OwnersSpec::Kind::kLists) return layout::owners(n, spec.lists, entry.over);
  constexpr i64 kMostDealt = 1 << 20;
  if (n > kMostDealt) {
    throw Error(ErrorCode::kLimit,
                fmt::format("axis '{}' of {} units is too long for a list of owners", axis, n))
        .note("found", size_origin(axis).empty() ? std::to_string(n) : size_origin(axis))
        .note("expected", fmt::format("at most {}", kMostDealt))
        .help("correct the size of the axis, or leave \"owners\" out");
  }
  const i64 parts = extent(mesh_, entry.over);
  const bool has_rounds = spec.kind == OwnersSpec::Kind::kRounds;
  const i64 runs = has_rounds ? runs_of_rounds(axis, n) : n;
  const layout::SplitRule rule = has_rounds ? rule_of(entry.spec) : layout::kBalanced;
  std::vector<std::vector<i64>> dealt(static_cast<size_t>(parts));
  for (i64 run = 0; run < runs; ++run) {
    const auto units = layout::part_of(n, runs, run, rule);
    std::vector<i64>& of = dealt[static_cast<size_t>(run % parts)];
    for (i64 unit = units.begin; unit < units.end; ++unit) of.push_back(unit);
  }
  return layout::owners(n, std::move(dealt), entry.over);
}

/// Returns the number of runs that are dealt to the parts in rounds. Throws kNotDivisible if one
/// would be empty, or by "uneven": "error" if they would differ.
i64 AxisTable::runs_of_rounds(const std::string& axis, i64 n) const {
  const Entry& entry = axes_.at(axis);
  const i64 parts = extent(mesh_, entry.over);
  const i64 rounds = entry.spec.owners->rounds;
  const i64 runs = checked_mul(parts, rounds).value_or(std::numeric_limits<i64>::max());
  const bool is_refused = runs > n || (entry.spec.uneven == Uneven::kError && n % runs != 0) ||
                          layout::part_of(n, runs, runs - 1, rule_of(entry.spec)).size() == 0;
  if (!is_refused) return runs;
  throw Error(ErrorCode::kNotDivisible,
              fmt::format("the {} of axis '{}' are not dealt to {} in {}", plural(n, "unit"), axis,
                          plural(parts, "rank"), plural(rounds, "round")))
      .note("found", fmt::format("{} for {}", plural(n, "unit"), plural(runs, "run")))
      .note("expected", entry.spec.uneven == Uneven::kError ? "as many units in every run"
                                                            : "a unit in every run")
      .help("choose fewer rounds, fewer ranks, or another policy for \"uneven\"");
}

/// Cuts in runs of `aligned` units; the last run may be shorter. Padding rounds up to a multiple of
/// "pad_to", and of a run on every device.
AxisExpr AxisTable::aligned_units(const std::string& axis, i64 n) const {
  const Entry& entry = axes_.at(axis);
  const i64 parts = extent(mesh_, entry.over);
  if (entry.pad_aligned || entry.spec.uneven == Uneven::kPad) {
    const i64 pad_to = entry.spec.pad_to.value_or(1);
    const auto of_runs = checked_mul(entry.aligned, parts);
    const auto multiple =
        of_runs ? checked_mul(pad_to / std::gcd(pad_to, *of_runs), *of_runs) : of_runs;
    if (!multiple) throw Error(ErrorCode::kLimit, "a padded axis has 2^63 units or more");
    return layout::split(n, entry.over, layout::padded(*multiple));
  }
  const i64 runs = ceil_div(n, entry.aligned);
  if (n % entry.aligned == 0)
    return layout::scale(layout::split(runs, entry.over, rule_of(entry.spec)), entry.aligned);
  std::vector<i64> boundaries = {0};
  for (i64 part = 0; part < parts; ++part) {
    const i64 end = layout::part_of(runs, parts, part, rule_of(entry.spec)).end * entry.aligned;
    boundaries.push_back(std::min(n, end));
  }
  return layout::cuts(std::move(boundaries), entry.over);
}

/// Cuts n units of `axis`, which is `heads` or `kv_heads`. Both are cut together, in whole KV
/// groups if the alignment divides them.
AxisExpr AxisTable::grouped_units(const std::string& axis, i64 n, const std::string& heads,
                                  const std::string& kv_heads) {
  const Entry& queries = axes_.at(heads);
  const Entry& group = axes_.at(kv_heads);
  layout::HeadCounts counts{axis == heads ? n : required_size(heads, axis),
                            axis == heads ? required_size(kv_heads, axis) : n};
  counts.kv_axis = kv_heads;
  const std::string heads_name = words_of(heads);
  const std::string kv_name = words_of(kv_heads);
  if (kv_heads != kKvHeads) {
    counts.heads_name = heads_name;
    counts.kv_name = kv_name;
  }
  if (has_owners(group.spec)) {
    AxisExpr groups = owned_units(kv_heads, counts.kv_heads);
    return axis == heads ? layout::scale(std::move(groups), units_per_group(counts)) : groups;
  }
  const i64 per_group = counts.kv_heads > 0 ? std::max<i64>(counts.heads / counts.kv_heads, 1) : 1;
  const i64 parts = extent(mesh_, queries.over);
  i64 together = std::lcm(group.aligned, queries.aligned / std::gcd(queries.aligned, per_group));
  const bool divides = counts.heads % together == 0 && counts.kv_heads % together == 0;
  // With fewer runs than devices, runs would be replicated, and devices would get KV heads that
  // they do not need.
  if (!divides || counts.kv_heads / together < parts) together = 1;
  counts.must_divide = uneven_of(queries) == Uneven::kError;
  layout::SplitRule rule = rule_of(queries.spec.uneven ? queries.spec : group.spec);
  rule.multiple /= std::gcd(rule.multiple, together);  // counted in runs
  const layout::HeadCut cut =
      layout::cut_heads({counts.heads / together, counts.kv_heads / together, counts.heads_name,
                         counts.kv_name, counts.kv_axis, counts.must_divide},
                        mesh_, queries.over, rule, group.spec.small.value_or(SmallPolicy::kError));
  const AxisExpr& units = axis == heads ? cut.queries : cut.kv;
  return together == 1 ? units : layout::scale(units, together);
}

AxisExpr AxisTable::units(const std::string& axis, i64 n) {
  const Entry& entry = axes_.at(axis);
  if (entry.spec.groups) return grouped_units(axis, n, axis, *entry.spec.groups);
  if (const std::string heads = grouped_by(axis); !heads.empty())
    return grouped_units(axis, n, heads, axis);
  if (has_owners(entry.spec)) return owned_units(axis, n);
  if (entry.aligned > 1) return aligned_units(axis, n);
  const SmallPolicy small = entry.spec.small.value_or(SmallPolicy::kError);
  const bool is_shared = small == SmallPolicy::kReplicate && n < extent(mesh_, entry.over);
  if (is_shared && !entry.small_in_preset) shared_.insert(axis);
  return layout::cut_units(n, mesh_, entry.over, rule_of(entry.spec), small);
}

bool AxisTable::has_groups(const std::string& axis) const {
  return axes_.at(axis).spec.groups.has_value() || !grouped_by(axis).empty();
}

void AxisTable::align(const std::map<std::string, i64>& units, bool pad) {
  for (const auto& [axis, together] : units) {
    axes_.at(axis).aligned = together;
    axes_.at(axis).pad_aligned = pad;
  }
}

/// An axis that is cut in the groups of another one has its policy, unless it says the same.
std::optional<Uneven> AxisTable::uneven_of(const Entry& entry) const {
  const bool is_shared = !entry.spec.uneven && entry.spec.groups;
  return is_shared ? axes_.at(*entry.spec.groups).spec.uneven : entry.spec.uneven;
}

const UnitCut& AxisTable::cut(const std::string& axis, i64 n) {
  const auto key = std::pair(axis, n);
  if (const auto found = cuts_.find(key); found != cuts_.end()) return found->second;
  const Entry& entry = axes_.at(axis);
  try {
    UnitCut made{axis, units(axis, n), uneven_of(entry).value_or(Uneven::kBalanced),
                 entry.spec.place, entry.spec.padding.value_or(layout::Fill::kZero)};
    if (!has_groups(axis) && !has_owners(entry.spec)) made.together = entry.aligned;
    return cuts_.emplace(key, std::move(made)).first->second;
  } catch (Error& e) {
    if (!e.place()) e.at(entry.spec.place);
    if (const std::string origin = size_origin(axis); !origin.empty()) e.note("config", origin);
    throw;
  }
}

}  // namespace shardtool::mapping
