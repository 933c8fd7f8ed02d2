#include "lib/api/reading/opened_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/exec/files/stored_box.h"
#include "lib/format/names.h"
#include "lib/format/safetensors/safetensors.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

bool is_shifted(const std::vector<index::ValueShift>& shifts) {
  return std::ranges::any_of(shifts,
                             [](const index::ValueShift& shift) { return !shift.is_plain(); });
}

Error own_values(const std::string& name) {
  return Error(ErrorCode::kUnsupported, "the ranks store values of their own for this tensor")
      .tensor(name)
      .help("merge or split the checkpoint, and open the result");
}

/// Torch files and data files of DCP have none.
bool has_safetensors_header(const format::Checkpoint& part, const format::SourceFile& file) {
  return format::is_safetensors_name(file.name) || part.format.starts_with("safetensors");
}

bool is_in_one_file(const exec::MoveSide& side) {
  return std::ranges::all_of(
      side.slots, [&](const exec::Slot& slot) { return slot.file == side.slots.front().file; });
}

}  // namespace

std::optional<int> TensorCut::holder_of(i64 rank) const {
  const auto found = std::ranges::find(ranks, rank);
  if (found == ranks.end()) return std::nullopt;
  return static_cast<int>(found - ranks.begin());
}

OpenedCheckpoint::OpenedCheckpoint(const OpenOptions& options)
    : source_(open_logical(
          options.sources,
          {.takes_files_of_ranks = true, .mapping = options.mapping.value_or(MappingChoice())})),
      files_(source_.files.size()) {
  if (!options.mapping || !says_cut(*options.mapping)) return;
  if (source_.is_sharded()) {
    throw Error(ErrorCode::kUsage, "an output of shardtool is opened in its own layout")
        .help("open it without a mesh or mapping, or reshard it first");
  }
  applied_ = apply_mapping(*options.mapping, source_);
  resolved_.resize(source_.tensors.size());
  for (const mapping::ResolvedTensor& tensor : applied_->resolution.tensors) {
    resolved_[tensor.tensor] = &tensor;
  }
}

const mesh::Mesh* OpenedCheckpoint::mesh() const {
  if (applied_) return &applied_->resolution.mesh;
  return source_.is_sharded() ? &source_.parts.front().manifest->mesh : nullptr;
}

std::optional<size_t> OpenedCheckpoint::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  if (numbers_.empty()) {
    numbers_.reserve(size());
    for (size_t t = 0; t < size(); ++t) numbers_.emplace(spec(t).name, t);
  }
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

size_t OpenedCheckpoint::number_of(std::string_view name) const {
  if (const auto number = find(name)) return *number;
  std::vector<std::string> names;
  for (const LogicalTensor& tensor : source_.tensors) names.push_back(tensor.spec.name);
  const std::string hint = did_you_mean(name, names);
  throw Error(ErrorCode::kUnknownName,
              fmt::format("the checkpoint has no tensor '{}'", quote_for_message(name)))
      .help(hint.empty() ? "keys() lists the tensors" : hint);
}

const mapping::ResolvedTensor* OpenedCheckpoint::resolved(size_t tensor) const {
  if (resolved_[tensor] != nullptr) return resolved_[tensor];
  throw Error(ErrorCode::kNoRule, "the mapping drops the tensor: no rank holds it")
      .tensor(spec(tensor).name);
}

TensorCut OpenedCheckpoint::cut(size_t tensor) const {
  if (applied_) {
    const mapping::ResolvedTensor* found = resolved(tensor);
    return {mesh(), &found->layout->holders(), found->layout->ranks(), found->by->rule};
  }
  if (!source_.is_sharded()) {
    throw Error(ErrorCode::kUsage, "a whole checkpoint has no ranks")
        .help("open it with a mesh, for example mesh={\"tp\": 8}");
  }
  const LogicalTensor& stored = source_.tensors[tensor];
  return {mesh(), stored.side.holders.get(), stored.ranks, stored.record()->cut->rule};
}

void OpenedCheckpoint::require_rank(i64 rank) const {
  if (size() > 0 && mesh() == nullptr) cut(0);
  if (mesh() == nullptr || rank < 0 || rank >= mesh()->size()) {
    throw Error(ErrorCode::kUsage, fmt::format("there is no rank {}", rank))
        .note("mesh", mesh() == nullptr ? "none" : to_string(*mesh()));
  }
  if (applied_ || !source_.is_sharded()) return;
  for (const format::Checkpoint& part : source_.parts) {
    const auto& written = part.manifest->ranks;
    if (std::ranges::find(written, rank, &format::RankRecord::rank) != written.end()) return;
  }
  throw Error(ErrorCode::kFileMissing, fmt::format("the files of rank {} are not here", rank))
      .at({path(), 0, 0, {}})
      .help("the split wrote only some ranks here: open all its folders together");
}

std::vector<size_t> OpenedCheckpoint::held_by(i64 rank) const {
  require_rank(rank);
  std::vector<size_t> held;
  for (size_t t = 0; t < size(); ++t) {
    if (applied_ && resolved_[t] == nullptr) continue;
    if (cut(t).holder_of(rank)) held.push_back(t);
  }
  return held;
}

/// Places in the files of the rank's shard: of its own, or of the tensor that it is cut from.
std::span<const exec::Slot> OpenedCheckpoint::slots(size_t tensor, i64 rank) const {
  const std::span<const exec::Slot> all = source_.tensors[tensor].side.slots;
  if (applied_) return all;
  return all.subspan(static_cast<size_t>(cut(tensor).holder_of(rank).value()), 1);
}

std::vector<size_t> OpenedCheckpoint::held_in_file_order(i64 rank) const {
  std::vector<size_t> held = held_by(rank);
  const auto first_slot = [&](size_t tensor) {
    const std::span<const exec::Slot> all = slots(tensor, rank);
    return all.empty() ? exec::Slot{} : *std::ranges::min_element(all, exec::lies_before);
  };
  std::ranges::stable_sort(held, exec::lies_before, first_slot);
  return held;
}

std::map<std::string, std::string> OpenedCheckpoint::metadata(i64 rank) const {
  std::set<int> files;
  for (const size_t tensor : held_by(rank)) {
    for (const exec::Slot& slot : slots(tensor, rank)) files.insert(slot.file);
  }
  std::map<std::string, std::string> all;
  int number = 0;
  for (const format::Checkpoint& part : source_.parts) {
    for (const format::SourceFile& file : part.files) {
      if (!files.contains(number++) || !has_safetensors_header(part, file)) continue;
      auto header = format::safetensors::read_header(store::open_reader(file.path));
      for (auto& [key, value] : header.metadata) all.try_emplace(std::move(key), std::move(value));
    }
  }
  return all;
}

std::span<const exec::SourceFile> OpenedCheckpoint::one_file(int file) const {
  const auto number = static_cast<size_t>(file);
  const std::lock_guard lock(mutex_);
  auto& opened = files_[number];
  if (!opened) opened = std::make_unique<const exec::SourceFile>(source_.files[number]);
  return {opened.get(), 1};
}

std::span<const exec::SourceFile> OpenedCheckpoint::all_files() const {
  const std::lock_guard lock(mutex_);
  if (all_files_.empty()) all_files_ = exec::open_sources(source_.files);
  return all_files_;
}

TensorReader OpenedCheckpoint::reader(TensorReader::Place place) const {
  if (place.side.slots.empty() || !is_in_one_file(place.side))
    return {std::move(place), all_files()};
  const auto file = one_file(place.side.slots.front().file);
  for (exec::Slot& slot : place.side.slots) slot.file = 0;
  return {std::move(place), file};
}

TensorReader OpenedCheckpoint::whole(size_t tensor) const {
  const LogicalTensor& stored = source_.tensors[tensor];
  if (is_shifted(stored.shifts)) throw own_values(stored.spec.name);
  return reader({stored.spec, stored.side, index::whole_region(stored.spec.shape)});
}

TensorReader OpenedCheckpoint::stored_shard(const LogicalTensor& tensor, size_t holder) const {
  TensorSpec spec = tensor.spec;
  spec.shape = tensor.side.holders->local_shape(static_cast<int>(holder));
  auto whole = std::make_shared<index::HolderSet>(index::HolderSet::whole(spec.shape));
  index::Region region = index::whole_region(spec.shape);
  return reader(
      {std::move(spec), {std::move(whole), {tensor.side.slots[holder]}}, std::move(region)});
}

TensorReader OpenedCheckpoint::shard(size_t tensor, i64 rank) const {
  require_rank(rank);
  const auto holder = cut(tensor).holder_of(rank);
  if (!holder) {
    throw Error(ErrorCode::kCoverage, fmt::format("rank {} does not hold the tensor", rank))
        .tensor(spec(tensor).name);
  }
  const LogicalTensor& stored = source_.tensors[tensor];
  if (!applied_) return stored_shard(stored, static_cast<size_t>(*holder));
  const mapping::ResolvedTensor* found = resolved(tensor);
  if (is_shifted(found->by->shifts) || is_shifted(stored.shifts))
    throw own_values(spec(tensor).name);
  return reader(
      {stored.spec, stored.side, found->layout->region(rank).value(), found->layout->fills(rank)});
}

}  // namespace shardtool::api
