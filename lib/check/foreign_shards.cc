#include "lib/check/foreign_shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "lib/check/container.h"
#include "lib/check/model.h"
#include "lib/model/bind.h"
#include "lib/model/graph/graph_list.h"

namespace shardtool::check {
namespace {

using mapping::ResolvedTensor;
using shardtool::to_string;

/// Parts of one tensor on all devices that have it.
struct Parts {
  std::vector<const RankTensor*> by_rank;        ///< ascending
  std::vector<Shape> candidates;                 ///< untested whole shapes
  std::shared_ptr<const layout::Layout> layout;  ///< once one of them fits
  std::optional<TensorSpec> whole;
  std::vector<index::ValueShift> shifts;  ///< of the layout's devices; empty: plain values
};

using AllParts = std::map<std::string_view, Parts>;

/// Ranks of a mesh that have files.
struct Ranks {
  i64 devices = 0;
  std::set<i64> present;
};

/// Groups tensors by name; skips ranks outside the mesh.
AllParts gather(const ForeignShards& shards, const Ranks& ranks) {
  AllParts all;
  for (const RankTensor& tensor : shards.tensors) {
    if (tensor.rank < ranks.devices) all[tensor.spec.name].by_rank.push_back(&tensor);
  }
  for (auto& [name, parts] : all) {
    std::sort(parts.by_rank.begin(), parts.by_rank.end(),
              [](const auto* a, const auto* b) { return a->rank < b->rank; });
  }
  return all;
}

i64 sum_along(const Parts& parts, size_t axis) {
  i64 sum = 0;
  for (const RankTensor* part : parts.by_rank) sum += part->spec.shape[axis];
  return sum;
}

/// Possible extents of an axis before it was cut: the sum of its parts, each held by the same
/// number of devices. Assumes the first part's size for a rank without files.
std::vector<i64> extents_of(const Parts& parts, size_t axis, i64 missing) {
  const i64 devices = std::ssize(parts.by_rank) + missing;
  const i64 first = parts.by_rank.front()->spec.shape[axis];
  const i64 sum = sum_along(parts, axis) + missing * first;
  std::vector<i64> extents;
  for (i64 copies = 1; copies < devices; ++copies) {
    if (devices % copies == 0 && sum % copies == 0) extents.push_back(sum / copies);
  }
  return extents;
}

/// Whole shapes from which these parts may result by cutting no, one or two axes. Parts that are
/// padded, or only partly replicated, do not add up: then config.json helps.
std::vector<Shape> candidates_of(const Parts& parts, const Ranks& ranks,
                                 const std::vector<i64>& known) {
  const Shape& first = parts.by_rank.front()->spec.shape;
  const auto same_rank = [&](const RankTensor* part) {
    return part->spec.shape.size() == first.size();
  };
  if (!std::all_of(parts.by_rank.begin(), parts.by_rank.end(), same_rank)) return {};
  const i64 missing = ranks.devices - std::ssize(ranks.present);
  std::vector<std::vector<i64>> extents;
  for (size_t axis = 0; axis < first.size(); ++axis) {
    extents.push_back(extents_of(parts, axis, missing));
  }
  std::vector<Shape> candidates{first};
  const auto add_cuts = [&](const Shape& from, size_t axis) {
    for (const i64 extent : extents[axis]) {
      candidates.push_back(from);
      candidates.back()[axis] = extent;
    }
  };
  for (size_t axis = 0; axis < first.size(); ++axis) add_cuts(first, axis);
  for (size_t axis = 0; axis < first.size(); ++axis) {
    for (const i64 extent : known) {
      candidates.push_back(first);
      candidates.back()[axis] = extent;
    }
  }
  for (size_t axis = 0; axis < first.size(); ++axis) {
    for (const i64 extent : extents[axis]) {
      Shape cut = first;
      cut[axis] = extent;
      for (size_t other = axis + 1; other < first.size(); ++other) add_cuts(cut, other);
    }
  }
  return candidates;
}

/// True if a layout gives every device with files exactly its part, and no part to the others.
bool fits(const layout::Layout& layout, const Parts& parts, const Ranks& ranks) {
  const auto is_present = [&](i64 rank) { return ranks.present.contains(rank); };
  const auto expected = std::count_if(layout.ranks().begin(), layout.ranks().end(), is_present);
  if (expected != std::ssize(parts.by_rank)) return false;
  return std::all_of(parts.by_rank.begin(), parts.by_rank.end(), [&](const RankTensor* part) {
    const auto region = layout.region(part->rank);
    return region && index::local_shape(*region) == part->spec.shape;
  });
}

/// Remembers the values that devices may have of their own instead of the whole tensor's, such as
/// group numbers. They depend on the whole shape of the weight, which a later round may decide.
void set_shifts(Parts& parts, const ResolvedTensor& resolved) {
  const auto& shifts = resolved.by->shifts;
  const auto adds = [](const index::ValueShift& shift) { return !shift.addends.empty(); };
  const bool is_same_layout = resolved.layout->ranks() == parts.layout->ranks();
  if (is_same_layout && std::ranges::any_of(shifts, adds)) parts.shifts = shifts;
}

/// Tries the next candidate of every undecided tensor, and counts those that it decides. Returns
/// false if no candidates are left.
bool try_next(AllParts& all, size_t round, const Ranks& ranks, const Resolve& resolve,
              i64& decided) {
  std::vector<TensorSpec> specs;
  std::vector<Parts*> tried;
  bool any = false;
  for (auto& [name, parts] : all) {
    const RankTensor& first = *parts.by_rank.front();
    const bool is_new = !parts.whole && round < parts.candidates.size();
    any = any || is_new;
    // Include decided tensors, since others may follow them.
    const Shape& shape = parts.whole ? parts.whole->shape
                         : is_new    ? parts.candidates[round]
                                     : first.spec.shape;
    specs.push_back({first.spec.name, first.spec.dtype, shape});
    tried.push_back(&parts);
  }
  if (!any) return false;
  const mapping::Resolution resolution = resolve(specs);
  for (const ResolvedTensor& resolved : resolution.tensors) {
    Parts& parts = *tried[resolved.tensor];
    if (parts.whole) set_shifts(parts, resolved);
    if (parts.whole || parts.candidates.empty()) continue;
    if (!fits(*resolved.layout, parts, ranks)) continue;
    parts.whole = specs[resolved.tensor];
    parts.layout = resolved.layout;
    set_shifts(parts, resolved);
    ++decided;
  }
  return true;
}

/// Decides the whole shapes. A tensor that follows another, as scales do their weight, fits only
/// once the other one is decided, so that its candidates are tried again then.
void decide_wholes(AllParts& all, const Ranks& ranks, const Resolve& resolve) {
  for (i64 decided = 1; decided > 0;) {
    decided = 0;
    for (size_t round = 0; try_next(all, round, ranks, resolve, decided); ++round) {
    }
  }
}

void check_files(const ForeignShards& shards, i64 devices, Findings& findings) {
  std::map<i64, std::set<i64>> parts;
  for (const RankFile& file : shards.files) {
    parts[file.name.rank].insert(file.name.part.value_or(0));
    const bool is_extra = file.name.rank >= devices;
    if (is_extra) {
      findings.add({.rule = CheckRule::kExtraFile,
                    .message = fmt::format("the mesh has no rank {}", file.name.rank),
                    .file = file.shown,
                    .rank = file.name.rank,
                    .expected = fmt::format("ranks 0 to {}", devices - 1)});
    }
    if (file.name.ranks && *file.name.ranks != devices) {
      findings.add({.rule = CheckRule::kMixedCheckpoints,
                    .message = "the file's name counts other ranks than the mesh has",
                    .file = file.shown,
                    .rank = file.name.rank,
                    .found = std::to_string(*file.name.ranks),
                    .expected = std::to_string(devices)});
    }
  }
  for (i64 rank = 0; rank < devices; ++rank) {
    if (parts.contains(rank)) continue;
    findings.add({.rule = CheckRule::kMissingRank,
                  .message = fmt::format("no file is for rank {}", rank),
                  .file = shards.files.front().shown,
                  .rank = rank,
                  .found = fmt::format("{} of {} ranks", parts.size(), devices),
                  .expected = "every rank of the mesh"});
  }
  for (const auto& [rank, numbers] : parts) {
    if (*numbers.rbegin() + 1 == std::ssize(numbers)) continue;
    findings.add({.rule = CheckRule::kRankFileMissing,
                  .message = fmt::format("files of rank {} are missing", rank),
                  .file = shards.files.front().shown,
                  .rank = rank,
                  .found = fmt::format("part {}", fmt::join(numbers, ", ")),
                  .expected = fmt::format("parts 0 to {}", *numbers.rbegin())});
  }
}

/// Formats "rank 0 [32, 64], rank 1 [32, 48]" for the first few.
std::string shapes_text(const Parts& parts) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(parts.by_rank.size(), kShown); ++i) {
    text += fmt::format("{}rank {} {}", i > 0 ? ", " : "", parts.by_rank[i]->rank,
                        to_string(parts.by_rank[i]->spec.shape));
  }
  return parts.by_rank.size() > kShown ? text + ", ..." : text;
}

class RankJudge {
 public:
  RankJudge(const ForeignShards& shards, const Ranks& ranks, Findings& findings)
      : shards_(shards), present_(ranks.present), findings_(findings) {}

  void judge(const Parts& parts) {
    const RankTensor& first = *parts.by_rank.front();
    for (const RankTensor* part : parts.by_rank) {
      if (part->spec.dtype == first.spec.dtype) continue;
      Finding other = finding(CheckRule::kRankDtype, *part, "the dtype differs between ranks");
      other.found = std::string(to_string(part->spec.dtype));
      other.expected = fmt::format("{} as on rank {}", to_string(first.spec.dtype), first.rank);
      return findings_.add(std::move(other));
    }
    if (parts.whole || !all_ranks_have(parts)) return;
    Finding misfit = finding(CheckRule::kRankShape, first,
                             "no whole shape was found that the mapping cuts into these");
    misfit.found = shapes_text(parts);
    misfit.rank = -1;
    misfit.fix = "check the mapping's rule for it, and that all files are of one split";
    findings_.add(std::move(misfit));
  }

 private:
  /// Reports a tensor that some ranks lack as missing on them.
  bool all_ranks_have(const Parts& parts) {
    std::set<i64> lacking = present_;
    for (const RankTensor* part : parts.by_rank) lacking.erase(part->rank);
    for (const i64 rank : lacking) {
      Finding absent = finding(CheckRule::kShardMissing, *parts.by_rank.front(),
                               fmt::format("rank {} has no shard of it", rank));
      absent.rank = rank;
      absent.found = shapes_text(parts);
      findings_.add(std::move(absent));
    }
    return lacking.empty();
  }

  Finding finding(CheckRule rule, const RankTensor& part, std::string message) const {
    const auto file = std::find_if(shards_.files.begin(), shards_.files.end(),
                                   [&](const auto& f) { return f.number == part.slot.file; });
    return {.rule = rule,
            .message = std::move(message),
            .file = file == shards_.files.end() ? "" : file->shown,
            .tensor = part.spec.name,
            .rank = part.rank};
  }

  const ForeignShards& shards_;
  const std::set<i64>& present_;
  Findings& findings_;
};

/// Adds the holders of a tensor, or each part alone if its whole tensor is unknown.
void add_data(const Parts& parts, std::vector<DataTensor>& data) {
  if (!parts.whole) {
    for (const RankTensor* part : parts.by_rank) {
      data.push_back(
          {part->spec,
           {std::make_shared<index::HolderSet>(index::HolderSet::whole(part->spec.shape)),
            {part->slot}},
           {part->rank},
           {},
           {}});
    }
    return;
  }
  auto holders = std::make_shared<index::HolderSet>(parts.whole->shape);
  DataTensor tensor{*parts.whole, {nullptr, {}}, {}, {}, {}};
  tensor.may_be_plain = true;
  const auto& devices = parts.layout->ranks();
  for (const RankTensor* part : parts.by_rank) {
    holders->add(*parts.layout->region(part->rank));
    tensor.side.slots.push_back(part->slot);
    tensor.ranks.push_back(part->rank);
    if (parts.shifts.empty()) continue;
    const auto device = std::ranges::find(devices, part->rank) - devices.begin();
    tensor.shifts.push_back(parts.shifts[static_cast<size_t>(device)]);
  }
  tensor.side.holders = std::move(holders);
  data.push_back(std::move(tensor));
}

}  // namespace

std::vector<i64> extents_of_model(const mapping::ModelConfig& config) {
  std::string why_not;
  const auto graph = model::find_graph(config, why_not);
  if (graph == nullptr) return {};
  const std::set<i64> extents = model::axis_extents(*graph, config);
  return {extents.begin(), extents.end()};
}

std::vector<DataTensor> check_foreign_shards(const ForeignShards& shards, const Resolve& resolve,
                                             Findings& findings) {
  Ranks ranks{resolve({}).mesh.size(), {}};
  for (const RankFile& file : shards.files) {
    if (file.name.rank < ranks.devices) ranks.present.insert(file.name.rank);
  }
  check_files(shards, ranks.devices, findings);
  AllParts all = gather(shards, ranks);
  const auto is_unruled = [&](std::string_view name) {
    return shards.unruled.contains(std::string(name));
  };
  for (auto& [name, parts] : all) {
    if (!is_unruled(name)) parts.candidates = candidates_of(parts, ranks, shards.extents);
  }
  decide_wholes(all, ranks, resolve);
  RankJudge judge(shards, ranks, findings);
  std::vector<DataTensor> data;
  i64 proved = 0;
  for (const auto& [name, parts] : all) {
    if (!is_unruled(name)) judge.judge(parts);
    proved += parts.whole ? 1 : 0;
    add_data(parts, data);
  }
  findings.add({.rule = CheckRule::kUnproved,
                .message = fmt::format("the shapes of {} of {} tensors fit the mapping on every "
                                       "rank; without a manifest it is not proved which rows and "
                                       "columns each rank holds",
                                       proved, all.size()),
                .file = shards.files.front().shown,
                .fix = "split with shardtool: its manifest makes all of it checkable"});
  return data;
}

void check_one_numbering(const format::Checkpoint& checkpoint, Findings& findings) {
  if (checkpoint.manifest) return;
  std::map<std::string, std::string> numberings;  // to the first file of each
  for (const auto& file : checkpoint.files) {
    if (const auto part = parse_part_name(file.name)) {
      numberings.emplace(fmt::format("{}-*-of-{:05}", part->first, part->second), file.name);
    } else if (const auto rank = parse_rank_name(file.name)) {
      numberings.emplace(rank->ranks ? fmt::format("{} ranks", *rank->ranks) : "ranks", file.name);
    }
  }
  if (numberings.size() < 2) return;
  std::vector<std::string> names;
  for (const auto& [numbering, file] : numberings) names.push_back(numbering);
  findings.add({.rule = CheckRule::kMixedCheckpoints,
                .message = "the folder holds files of different numberings",
                .file = path_in(checkpoint.folder(), numberings.begin()->second),
                .found = fmt::format("{}", fmt::join(names, ", ")),
                .expected = "files of one checkpoint",
                .fix = "keep each checkpoint in a folder of its own"});
}

}  // namespace shardtool::check
