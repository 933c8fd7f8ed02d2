#include "lib/api/transfer/sources/foreign_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/transfer/sources/stored_values.h"
#include "lib/base/error.h"
#include "lib/format/typed_location.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

using check::CheckRule;
using check::RankTensor;
using format::Problem;
using format::ProblemKind;
using shardtool::to_string;

/// Ignores unclear groupings and duplicate tensors, which are normal for files of ranks; throws
/// other problems.
void throw_unless_of_ranks(Problem problem) {
  const bool is_of_ranks =
      problem.kind == ProblemKind::kUnclearChoice || problem.kind == ProblemKind::kTensorInTwoFiles;
  if (!is_of_ranks) throw std::move(problem.error);
}

/// True for a folder that is opened by its manifest, which is larger than the headers.
bool has_manifest(const std::string& location) {
  const auto typed = format::parse_location(location);
  return typed.format.empty() &&
         store::is_file(fmt::format("{}/{}", typed.place, format::kManifestName));
}

using Parts = std::map<i64, const RankTensor*>;

/// The shifts of integers that the ranks of a tensor may have; empty if a split changes none.
std::vector<index::ValueShift> possible_shifts(const mapping::ResolvedTensor& resolved) {
  const std::vector<index::ValueShift>& all = resolved.by->shifts;
  const auto adds = [](const index::ValueShift& shift) { return !shift.addends.empty(); };
  return std::ranges::any_of(all, adds) ? all : std::vector<index::ValueShift>();
}

bool is_of_integers(const TensorSpec& spec) {
  return spec.dtype == Dtype::kI32 || spec.dtype == Dtype::kI64;
}

class Placing {
 public:
  /// Requires the files of the result's shards.
  Placing(const ForeignFiles& files, const LogicalCheckpoint& whole, ForeignCheckpoint& result)
      : files_(files), whole_(whole), result_(result) {
    for (const RankTensor& tensor : files.shards.tensors) {
      parts_[tensor.spec.name][tensor.rank] = &tensor;
    }
  }

  /// Returns the tensor's holders, or nullopt if no rank has a part of it.
  std::optional<LogicalTensor> place(const mapping::ResolvedTensor& resolved) {
    const LogicalTensor& whole = whole_.tensors[resolved.tensor];
    const TensorSpec& spec = whole.spec;
    const layout::Layout& layout = *resolved.layout;
    const std::vector<index::ValueShift> shifts = possible_shifts(resolved);
    std::vector<index::ValueShift> own;  // of the holders
    const auto found = parts_.find(spec.name);
    if (found == parts_.end()) return std::nullopt;
    Parts& parts = found->second;
    LogicalTensor tensor;
    tensor.spec = {spec.name, parts.begin()->second->spec.dtype, spec.shape};
    auto holders = std::make_shared<index::HolderSet>(spec.shape);
    size_t number = 0;
    for (const i64 rank : layout.ranks()) {
      const index::Region region = *layout.region(rank);
      const index::ValueShift* const shift = shifts.empty() ? nullptr : &shifts[number++];
      const auto part = parts.find(rank);
      if (part == parts.end() && missing_.contains(rank)) continue;
      if (part == parts.end()) {
        add(CheckRule::kShardMissing, spec.name, rank,
            fmt::format("rank {} has no shard of it", rank), "nothing",
            to_string(index::local_shape(region)));
        continue;
      }
      check_part(*part->second, tensor.spec, region);
      holders->add(region);
      tensor.side.slots.push_back(part->second->slot);
      tensor.ranks.push_back(rank);
      if (shift != nullptr) own.push_back(*shift);
      parts.erase(part);
    }
    tensor.side.holders = std::move(holders);
    if (!own.empty() && !is_misfit(spec.name)) compare_values(whole, own, tensor);
    return tensor;
  }

  void check_ranks(i64 devices) {
    std::set<i64> present;
    for (const check::RankFile& file : files_.shards.files) present.insert(file.name.rank);
    for (i64 rank = 0; rank < devices; ++rank) {
      if (present.contains(rank)) continue;
      missing_.insert(rank);
      add(CheckRule::kMissingRank, "", rank, fmt::format("no file is for rank {}", rank),
          fmt::format("{} of {} ranks", present.size(), devices), "every rank of the mesh");
    }
  }

  /// Reports parts of the ranks that were not placed.
  void check_rest() {
    std::map<std::string_view, const LogicalTensor*> known;
    for (const LogicalTensor& tensor : whole_.tensors) known[tensor.spec.name] = &tensor;
    for (const auto& [name, parts] : parts_) {
      for (const auto& [rank, part] : parts) {
        if (rank >= result_.resolution.mesh.size()) continue;  // a surplus file
        const bool is_known = known.count(name) > 0;
        add(is_known ? CheckRule::kRankShape : CheckRule::kMixedCheckpoints, std::string(name),
            rank,
            is_known ? fmt::format("the mapping gives rank {} no shard of it", rank)
                     : "the shards have a tensor that the reference lacks",
            to_string(part->spec.shape), "nothing");
      }
    }
  }

 private:
  /// Reports only the first misfit of each tensor.
  void check_part(const RankTensor& part, const TensorSpec& spec, const index::Region& region) {
    if (is_misfit(spec.name)) return;
    const Shape expected = index::local_shape(region);
    if (part.spec.shape != expected) {
      add(CheckRule::kRankShape, spec.name, part.rank,
          fmt::format("rank {} has {} where the mapping cuts {}", part.rank,
                      to_string(part.spec.shape), to_string(expected)),
          to_string(part.spec.shape), to_string(expected));
    } else if (part.spec.dtype != spec.dtype) {
      add(CheckRule::kRankDtype, spec.name, part.rank, "the dtype differs between ranks",
          std::string(to_string(part.spec.dtype)), std::string(to_string(spec.dtype)));
    }
  }

  /// True if the last finding is about this tensor.
  bool is_misfit(const std::string& name) const {
    return !result_.misfits.empty() && result_.misfits.back().tensor == name;
  }

  /// Finds out by the unsharded tensor which values the ranks have, and reports others.
  void compare_values(const LogicalTensor& whole, std::span<const index::ValueShift> own,
                      LogicalTensor& tensor) {
    const TensorSpec& spec = whole.spec;
    if (!is_of_integers(spec) || !is_of_integers(tensor.spec)) return;
    const std::vector<i64> unsharded = exec::load_shifted(
        spec.name, spec.dtype, spec.shape, whole.side, whole.shifts, opened(whole_files_, whole_));
    StoredValues stored =
        stored_values(tensor, own, unsharded, opened(shard_files_, result_.shards));
    tensor.shifts = std::move(stored.shifts);
    for (const OtherValue& other : stored.others) {
      const bool is_of_groups = own[other.holder].stored_below.has_value();
      std::string expected = std::to_string(other.unsharded);
      if (other.own && other.own != other.unsharded) {
        expected += fmt::format(", or {} counted for this rank alone", *other.own);
      }
      const i64 rank = tensor.ranks[other.holder];
      add(is_of_groups ? CheckRule::kGroupIndex : CheckRule::kRankShape, spec.name, rank,
          fmt::format("element {} on rank {} has another value than in the reference",
                      other.element, rank),
          std::to_string(other.found), std::move(expected));
    }
  }

  /// Opens the files of a checkpoint once.
  using Sources = std::optional<std::vector<exec::SourceFile>>;
  static std::span<const exec::SourceFile> opened(Sources& sources,
                                                  const LogicalCheckpoint& checkpoint) {
    if (!sources) sources = exec::open_sources(checkpoint.files);
    return *sources;
  }

  void add(CheckRule rule, std::string name, i64 rank, std::string message, std::string found,
           std::string expected) {
    result_.misfits.push_back({.rule = rule,
                               .message = std::move(message),
                               .file = file_of(rank),
                               .tensor = std::move(name),
                               .rank = rank,
                               .found = std::move(found),
                               .expected = std::move(expected),
                               .severity = check::rule_info(rule).severity});
  }

  std::string file_of(i64 rank) const {
    for (const check::RankFile& file : files_.shards.files) {
      if (file.name.rank == rank) return file.shown;
    }
    return files_.shards.files.front().shown;
  }

  const ForeignFiles& files_;
  const LogicalCheckpoint& whole_;
  ForeignCheckpoint& result_;
  Sources whole_files_, shard_files_;
  std::map<std::string_view, Parts> parts_;  ///< not placed yet
  std::set<i64> missing_;                    ///< ranks without files
};

}  // namespace

std::string ForeignFiles::config_path() const {
  const auto found = std::ranges::find_if(
      parts, [](const format::Checkpoint& part) { return !part.config_path.empty(); });
  return found == parts.end() ? "" : found->config_path;
}

std::vector<format::Checkpoint> survey_files_of_ranks(const std::vector<std::string>& locations) {
  std::vector<format::Checkpoint> parts;
  for (const std::string& location : with_rank_folders(locations)) {
    parts.push_back(format::survey_checkpoint(location, throw_unless_of_ranks));
  }
  return parts;
}

std::optional<ForeignFiles> find_foreign_files(const std::vector<std::string>& locations) {
  format::require_locations(locations);
  if (has_manifest(locations.front())) return std::nullopt;
  ForeignFiles files;
  files.parts = survey_files_of_ranks(locations);
  if (files.parts.front().manifest) return std::nullopt;
  auto shards = as_foreign_shards(files.parts);
  if (!shards) return std::nullopt;
  files.shards = *std::move(shards);
  return files;
}

ForeignCheckpoint place_foreign_files(ForeignFiles files, const MappingChoice& choice,
                                      const LogicalCheckpoint& whole) {
  AppliedMapping applied = apply_mapping(choice, whole);
  refuse_fused(files.shards, applied.mapping);
  ForeignCheckpoint result;
  result.resolution = std::move(applied.resolution);
  std::vector<mapping::ResolvedTensor> placed;
  for (const format::Checkpoint& part : files.parts) {
    for (const auto& file : part.files) {
      result.shards.files.push_back({file.path, file.identity});
    }
  }
  Placing placing(files, whole, result);
  placing.check_ranks(result.resolution.mesh.size());
  for (mapping::ResolvedTensor& resolved : result.resolution.tensors) {
    auto tensor = placing.place(resolved);
    if (!tensor) continue;
    resolved.tensor = result.shards.tensors.size();
    result.shards.tensors.push_back(*std::move(tensor));
    placed.push_back(std::move(resolved));
  }
  placing.check_rest();
  result.resolution.tensors = std::move(placed);
  result.shards.parts = std::move(files.parts);
  for (format::Checkpoint& part : result.shards.parts) part.tensors = {};
  return result;
}

}  // namespace shardtool::api
