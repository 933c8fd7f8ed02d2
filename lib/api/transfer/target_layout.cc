#include "lib/api/transfer/target_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "lib/api/mapping/recorded_mapping.h"
#include "lib/api/transfer/sources/boxes.h"
#include "lib/api/transfer/sources/chunks.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/index/holder_set_pool.h"
#include "lib/index/interleave.h"
#include "lib/mapping/match/unmatched_names.h"
#include "lib/mapping/resolve/cut_checks.h"

namespace shardtool::api {
namespace {

std::vector<i64> chosen_ranks(const mesh::Mesh& mesh, const std::vector<i64>& ranks) {
  if (ranks.empty()) {
    std::vector<i64> all(static_cast<size_t>(mesh.size()));
    std::iota(all.begin(), all.end(), i64{0});
    return all;
  }
  std::vector<i64> chosen = ranks;
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  for (const i64 rank : {chosen.front(), chosen.back()}) {
    if (rank >= 0 && rank < mesh.size()) continue;
    throw Error(ErrorCode::kUsage, fmt::format("there is no rank {}: the mesh {} has {} devices",
                                               rank, to_string(mesh), mesh.size()))
        .help(fmt::format("ranks go from 0 to {}", mesh.size() - 1));
  }
  return chosen;
}

/// Holders of a layout on the chosen ranks; one set for all tensors that share the layout.
class ChosenHolders {
 public:
  explicit ChosenHolders(const std::vector<i64>& ranks) : ranks_(&ranks) {}

  struct Set {
    std::shared_ptr<const index::HolderSet> holders;
    std::vector<i64> ranks;
    std::shared_ptr<const std::vector<Fill>> fills;
  };
  const Set& of(const std::shared_ptr<const layout::Layout>& layout) {
    const auto [found, is_new] = sets_.try_emplace(layout.get());
    if (is_new) found->second = choose(layout);
    return found->second;
  }

 private:
  Set choose(const std::shared_ptr<const layout::Layout>& layout) const {
    const std::vector<i64>& all = layout->ranks();
    Set set;
    std::set_intersection(all.begin(), all.end(), ranks_->begin(), ranks_->end(),
                          std::back_inserter(set.ranks));
    set.holders = set.ranks == all
                      ? std::shared_ptr<const index::HolderSet>(layout, &layout->holders())
                      : holders_on(set.ranks, *layout);
    set.fills = fills_of(*layout, set.ranks);
    return set;
  }

  static std::shared_ptr<const index::HolderSet> holders_on(const std::vector<i64>& ranks,
                                                            const layout::Layout& layout) {
    auto holders = std::make_shared<index::HolderSet>(layout.shape());
    for (size_t h = 0; h < layout.ranks().size(); ++h) {
      if (!std::binary_search(ranks.begin(), ranks.end(), layout.ranks()[h])) continue;
      holders->add(layout.holders().region(static_cast<int>(h)));
    }
    return holders;
  }

  /// The n-th fills of all ranks form one set of holders.
  static std::shared_ptr<const std::vector<Fill>> fills_of(const layout::Layout& layout,
                                                           const std::vector<i64>& ranks) {
    std::vector<std::shared_ptr<index::HolderSet>> sets;
    std::vector<Fill> fills;
    for (size_t h = 0; h < ranks.size(); ++h) {
      const auto regions = layout.fills(ranks[h]);
      for (size_t f = 0; f < regions.size(); ++f) {
        if (f == sets.size()) {
          sets.push_back(std::make_shared<index::HolderSet>(layout.shape()));
          fills.push_back({sets.back(), {}});
        }
        sets[f]->add(regions[f]);
        fills[f].of.push_back(h);
      }
    }
    return fills.empty() ? nullptr : std::make_shared<const std::vector<Fill>>(std::move(fills));
  }

  const std::vector<i64>* ranks_;
  std::map<const layout::Layout*, Set> sets_;
};

bool is_refined(const mapping::ResolvedTensor& tensor) {
  const auto& refinement = tensor.layout->refinement();
  return std::any_of(refinement.begin(), refinement.end(), [](i64 parts) { return parts > 1; });
}

std::shared_ptr<const format::CutRecord> merged_cut(const Shape& shape) {
  format::CutRecord cut{"merged"};
  for (const i64 extent : shape) cut.axes.push_back({"", to_string(layout::whole(extent))});
  return std::make_shared<const format::CutRecord>(std::move(cut));
}

/// Shifts of the chosen ranks.
std::vector<index::ValueShift> chosen_shifts(const mapping::ResolvedTensor& resolved,
                                             const std::vector<i64>& ranks) {
  std::vector<index::ValueShift> shifts;
  const auto& all = resolved.layout->ranks();
  for (size_t h = 0; h < all.size() && !resolved.by->shifts.empty(); ++h) {
    if (!std::binary_search(ranks.begin(), ranks.end(), all[h])) continue;
    shifts.push_back(resolved.by->shifts[h]);
  }
  return shifts;
}

}  // namespace

std::unordered_map<size_t, i64> interleaved_units(std::span<const mapping::OutputTensor> output) {
  std::unordered_map<size_t, i64> units;
  const std::function<void(const mapping::Content&)> visit = [&](const mapping::Content& content) {
    if (content.interleaved > 0) units[content.tensor] = content.interleaved;
    std::ranges::for_each(content.parts, visit);
  };
  for (const mapping::OutputTensor& tensor : output) {
    if (!tensor.constant) visit(tensor.content);
  }
  return units;
}

std::shared_ptr<const index::HolderSet> interleaved_holders(const index::HolderSet& holders,
                                                            i64 unit, const std::string& name) {
  auto result = std::make_shared<index::HolderSet>(holders.shape());
  for (int h = 0; h < holders.size(); ++h) {
    index::Region region = holders.region(h);
    const auto rows = region.empty() ? std::nullopt : index::interleave(region[0], unit);
    if (!rows) {
      throw Error(ErrorCode::kStrategy, "rows that are interleaved must be cut in whole units")
          .tensor(quote_for_message(name))
          .note("found", to_string(region))
          .note("expected", fmt::format("units of {} rows", unit));
    }
    region[0] = *rows;
    result->add(region);
  }
  return result;
}

std::vector<format::AxisRecord> axis_records(const mapping::ResolvedTensor& tensor) {
  std::vector<format::AxisRecord> records;
  for (const layout::LayoutAxis& axis : tensor.layout->axes()) {
    const std::string expression = to_string(axis.expr);
    records.push_back(
        {axis.logical, axis.granularity == 1
                           ? expression
                           : fmt::format("coarsen({}, {})", expression, axis.granularity)});
  }
  for (const layout::IndexAxis& axis : mapping::index_axes(tensor)) {
    if (!axis.expr.is_sharded()) continue;
    records.push_back(
        {fmt::format("{}={}", axis.logical, fmt::join(axis.indices(), ",")), to_string(axis.expr)});
  }
  return records;
}

namespace {

std::shared_ptr<const format::CutRecord> cut_record(const mapping::ResolvedTensor& resolved) {
  const mapping::TensorDecision& by = *resolved.by;
  return std::make_shared<const format::CutRecord>(
      format::CutRecord{by.rule, axis_records(resolved), by.transforms, by.bias});
}

/// First tensor by name that some device of the mesh does not hold as a box. Regards all devices,
/// so that the folders of several runs with --ranks agree.
std::optional<NotBoxes> first_not_boxes(const LogicalCheckpoint& source,
                                        const mapping::Resolution& resolution) {
  std::unordered_map<const layout::Layout*, std::optional<std::string>> reasons;
  std::optional<NotBoxes> first;
  for (const mapping::ResolvedTensor& tensor : resolution.tensors) {
    const auto [found, is_new] = reasons.try_emplace(tensor.layout.get());
    if (is_new) found->second = why_not_boxes(tensor.layout->holders(), tensor.layout->ranks());
    const bool is_shifted = !tensor.by->shifts.empty();
    if (!found->second && !is_shifted) continue;
    const std::string& name = source.tensors[tensor.tensor].spec.name;
    if (first && first->tensor <= name) continue;
    first = {name, found->second.value_or("every device has values of its own")};
  }
  return first;
}

/// Names of the document that the user or config.json chose and of those for storage, without the
/// documents they extend.
std::vector<std::string> chosen_documents(const mapping::Mapping& mapping) {
  std::vector<std::string> names{mapping.own().name};
  for (const mapping::Document& document : mapping.documents()) {
    const bool is_storage = !document.quantization.empty() && document.name != names.front();
    if (is_storage) names.push_back(document.name);
  }
  return names;
}

/// Holders with the rows of every unit interleaved; one set for all tensors that share a layout.
class Interleaving {
 public:
  void apply(TargetTensor& tensor, i64 unit, const std::string& name) {
    auto& [holders, cut] = known_[{tensor.holders.get(), tensor.cut.get(), unit}];
    if (!holders) {
      holders = interleaved_holders(*tensor.holders, unit, name);
      format::CutRecord record = *tensor.cut;
      record.transforms.push_back(fmt::format("rows interleaved in units of {}", unit));
      cut = std::make_shared<const format::CutRecord>(std::move(record));
    }
    tensor.holders = holders;
    tensor.cut = cut;
  }

 private:
  using Key = std::tuple<const index::HolderSet*, const format::CutRecord*, i64>;
  std::map<Key, std::pair<std::shared_ptr<const index::HolderSet>,
                          std::shared_ptr<const format::CutRecord>>>
      known_;
};

/// True if the files have the tensor of this name under it, in its own shape.
bool is_as_before(const mapping::OutputTensor& output, const std::string& name) {
  return output.content.kind == mapping::Content::Kind::kTensor && output.content.joined == 0 &&
         output.name == name;
}

/// Sets the names of the shards on the devices of an output tensor that has only some.
void name_shards(const mapping::OutputTensor& output, TargetTensor& tensor) {
  const auto name = std::make_shared<const std::string>(output.name);
  tensor.stored_on.resize(tensor.ranks.size());
  for (size_t h = 0; h < tensor.ranks.size(); ++h) {
    if (std::ranges::binary_search(output.ranks, tensor.ranks[h])) tensor.stored_on[h] = name;
  }
}

/// Sets TargetTensor::stored_as and stored_on, and interleaves the holders' rows where the files
/// have them so.
void name_storage(const LogicalCheckpoint& source, TargetLayout& target) {
  std::unordered_map<size_t, std::shared_ptr<const std::string>> stored_as;
  const std::function<void(const mapping::Content&, const std::shared_ptr<const std::string>&)>
      visit = [&](const mapping::Content& content, const std::shared_ptr<const std::string>& name) {
        if (content.kind == mapping::Content::Kind::kTensor) stored_as[content.tensor] = name;
        for (const mapping::Content& part : content.parts) visit(part, name);
      };
  std::unordered_multimap<size_t, const mapping::OutputTensor*> divided;
  for (const mapping::OutputTensor& output : *target.output) {
    if (output.constant) continue;
    const bool is_kept = is_as_before(output, source.tensors[output.content.tensor].spec.name);
    visit(output.content, is_kept ? nullptr : std::make_shared<const std::string>(output.name));
    if (!output.ranks.empty() && !is_kept) divided.emplace(output.content.tensor, &output);
  }
  const std::unordered_map<size_t, i64> units = interleaved_units(*target.output);
  Interleaving interleaving;
  for (TargetTensor& tensor : target.tensors) {
    tensor.stored_as = stored_as[tensor.source];
    const auto [first, last] = divided.equal_range(tensor.source);
    for (auto output = first; output != last; ++output) name_shards(*output->second, tensor);
    const auto unit = units.find(tensor.source);
    if (unit == units.end()) continue;
    interleaving.apply(tensor, unit->second, source.tensors[tensor.source].spec.name);
  }
}

/// Names of the tensors that the output does not have.
std::vector<std::string> dropped_names(const LogicalCheckpoint& source,
                                       const AppliedMapping& applied) {
  std::vector<std::string> names;
  for (const size_t dropped : applied.resolution.dropped) {
    names.push_back(source.tensors[dropped].spec.name);
  }
  names.insert(names.end(), source.left_out.begin(), source.left_out.end());
  for (const mapping::LeftOut& twin : applied.left_out) {
    names.push_back(source.tensors[twin.tensor].spec.name);
  }
  return names;
}

std::vector<std::string> warnings_of(const AppliedMapping& applied) {
  std::vector<std::string> warnings = applied.resolution.warnings;
  for (const mapping::DoubtfulCut& cut : applied.doubts) warnings.push_back(to_string(cut));
  for (const std::string& reason : applied.experimental) {
    warnings.push_back(
        fmt::format("experimental, since no engine has loaded such files of {} yet: {}",
                    applied.layout, reason));
  }
  return warnings;
}

}  // namespace

TargetLayout sharded_target(const LogicalCheckpoint& source, const AppliedMapping& applied,
                            const std::vector<i64>& ranks) {
  const mapping::Resolution& resolution = applied.resolution;
  TargetLayout target;
  target.mesh = resolution.mesh;
  target.ranks = chosen_ranks(target.mesh, ranks);
  target.mapping = mapping_to_json(applied.mapping);
  target.axes = applied.axes;
  target.allows_empty_shards = applied.allows_empty_shards;
  target.config = applied.config;
  target.mapping_names = chosen_documents(applied.mapping);
  target.tied = resolution.tied;
  target.warnings = warnings_of(applied);
  target.dropped = dropped_names(source, applied);
  target.left_out = applied.left_out;
  for (const mapping::UnevenCut& cut : resolution.uneven) {
    target.uneven.push_back({cut.axis, cut.sizes, cut.example_tensor, cut.tensors});
    target.warnings.push_back(fmt::format(
        "axis '{}' is cut unevenly, {} ({}, e.g. {}), and most engines need equal shards: {} "
        "(--require-even refuses the cut)",
        cut.axis, mapping::sum_text(cut.sizes), plural(cut.tensors, "tensor"), cut.example_tensor,
        mapping::even_counts(cut.units, std::ssize(cut.sizes))));
  }
  if (std::any_of(resolution.tensors.begin(), resolution.tensors.end(), is_refined)) {
    target.warnings.emplace_back(
        "some scales have smaller blocks now than config.json says; it is copied as it is");
  }
  target.layout = applied.layout;
  target.engine_files = applied.engine_files;
  target.form = applied.form;
  target.output = applied.output;
  const bool may_be_no_box = !target.output && !target.form.has_chunks;
  if (may_be_no_box) target.not_boxes = first_not_boxes(source, resolution);
  ChosenHolders chosen(target.ranks);
  using CutKey = std::pair<const layout::Layout*, std::vector<i64>>;
  std::map<CutKey, std::shared_ptr<const format::CutRecord>> cuts;
  for (const mapping::ResolvedTensor& resolved : resolution.tensors) {
    if (applied.leaves_out(resolved.tensor)) continue;
    const ChosenHolders::Set& set = chosen.of(resolved.layout);
    auto& cut = cuts[{resolved.layout.get(), resolved.numbers}];
    if (!cut) cut = cut_record(resolved);
    target.tensors.push_back({resolved.tensor, set.holders, set.ranks,
                              resolved.layout->is_sharded(), cut, set.fills,
                              chosen_shifts(resolved, set.ranks)});
  }
  if (target.output) name_storage(source, target);
  if (!target.form.has_chunks) return target;
  if (std::ssize(target.ranks) < target.mesh.size()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("the layout {} is of all ranks together", target.layout))
        .help("leave out --ranks and --rank");
  }
  store_in_chunks(source, target);
  return target;
}

TargetLayout whole_target(const LogicalCheckpoint& source, const layouts::EngineLayout* layout) {
  TargetLayout target;
  target.is_whole = true;
  if (layout != nullptr && !layout->models.empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("the layout {} is of shards", layout->label()))
        .help(fmt::format("`shardtool split` writes it, and `shardtool reshard --to-mesh tp=N "
                          "--layout {}`, over the mesh that you name",
                          layout->label()));
  }
  if (layout != nullptr) {
    target.layout = layout->label();
    target.engine_files = layouts::names_for(*layout, target.mesh);
    target.form = layout->form;
  }
  target.ranks = {0};
  index::HolderSetPool pool;
  std::map<Shape, std::shared_ptr<const format::CutRecord>> cuts;
  for (size_t t = 0; t < source.tensors.size(); ++t) {
    const Shape& shape = source.tensors[t].spec.shape;
    auto& cut = cuts[shape];
    if (!cut) cut = merged_cut(shape);
    target.tensors.push_back({t, pool.whole(shape), {0}, false, cut});
  }
  if (mapping::has_unmerged_adapter(source.specs())) {
    target.warnings.push_back(
        fmt::format("not the weights that were trained: {}", mapping::kMergeAdapter));
  }
  const auto& manifest = source.parts.front().manifest;
  if (manifest) {
    target.mapping = manifest->mapping;
    target.axes = manifest->axes;
    target.allows_empty_shards = manifest->allows_empty_shards;
    target.tied = manifest->tied;
    target.dropped = manifest->dropped;
  }
  target.dropped.insert(target.dropped.end(), source.left_out.begin(), source.left_out.end());
  return target;
}

}  // namespace shardtool::api
