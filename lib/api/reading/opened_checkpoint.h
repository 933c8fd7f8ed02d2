#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/reading/map_window.h"
#include "lib/api/reading/tensor_reader.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/base/name_map.h"
#include "lib/layout/torch_placements.h"
#include "lib/mesh/mesh.h"

namespace shardtool::api {

struct OpenOptions {
  std::vector<std::string> sources;  ///< one checkpoint, or outputs of one split
  /// Layout in which ranks see the tensors of a whole checkpoint. Outputs have their own.
  std::optional<MappingChoice> mapping;
};

/// Cut of a tensor over the ranks of a mesh. Refers to the opened checkpoint.
struct TensorCut {
  const mesh::Mesh* mesh = nullptr;
  const index::HolderSet* holders = nullptr;
  std::span<const i64> ranks;  ///< of the holders
  std::string_view rule;

  /// The rank's holder; nullopt if it does not hold the tensor.
  std::optional<int> holder_of(i64 rank) const;
};

/// Checkpoint whose headers were read, for reading its tensors: whole, or as ranks hold them. Names
/// are the checkpoint's own, whatever the files call them. All const members may be called from
/// several threads at once.
class OpenedCheckpoint {
 public:
  /// Reads headers only. Throws the errors of open_logical, those of apply_mapping with a mapping,
  /// and kUsage for a mapping with shards.
  explicit OpenedCheckpoint(const OpenOptions& options);

  const std::string& path() const { return source_.parts.front().path; }
  const std::string& format() const { return source_.parts.front().format; }
  std::vector<std::string> warnings() const { return source_.warnings(); }
  /// Mesh of the ranks; null for a whole checkpoint without a mapping.
  const mesh::Mesh* mesh() const;

  size_t size() const { return source_.tensors.size(); }
  const TensorSpec& spec(size_t tensor) const { return source_.tensors[tensor].spec; }
  std::optional<size_t> find(std::string_view name) const;
  /// Throws kUnknownName, with near misses, if there is no such tensor.
  size_t number_of(std::string_view name) const;

  /// Throws kUsage without a mesh; kNoRule for a tensor that the mapping drops.
  TensorCut cut(size_t tensor) const;
  /// Throws kUsage without a mesh or for a rank outside of it.
  void require_rank(i64 rank) const;
  /// Tensors that the rank holds. Throws as require_rank.
  std::vector<size_t> held_by(i64 rank) const;
  /// The same tensors in the order of their first bytes in the files.
  std::vector<size_t> held_in_file_order(i64 rank) const;
  /// Entries of `__metadata__` in the safetensors files of these tensors, sorted by key; of a key
  /// that several have, that of the first file. Reads the headers again. Throws as require_rank and
  /// read_header.
  std::map<std::string, std::string> metadata(i64 rank) const;

  /// The whole tensor, from any files. Throws kUnsupported if the ranks store values of their own.
  TensorReader whole(size_t tensor) const;
  /// The rank's shard: as its file stores it, or as the mapping cuts it. Throws kCoverage if the
  /// rank does not hold the tensor, and as cut().
  TensorReader shard(size_t tensor, i64 rank) const;
  /// Bytes around a box of one of these readers.
  MapWindow::View view(const TensorReader::FileBox& box) const {
    return window_.view(*box.file, box.offset, box.bytes);
  }

 private:
  const mapping::ResolvedTensor* resolved(size_t tensor) const;
  TensorReader reader(TensorReader::Place place) const;
  std::span<const exec::Slot> slots(size_t tensor, i64 rank) const;
  TensorReader stored_shard(const LogicalTensor& tensor, size_t holder) const;
  std::span<const exec::SourceFile> one_file(int file) const;
  std::span<const exec::SourceFile> all_files() const;

  LogicalCheckpoint source_;
  std::optional<AppliedMapping> applied_;
  std::vector<const mapping::ResolvedTensor*> resolved_;  ///< by tensor; null: dropped

  mutable std::mutex mutex_;  ///< of what is made on first use
  mutable NameViewMap<size_t> numbers_;
  mutable std::vector<std::unique_ptr<const exec::SourceFile>> files_;
  mutable std::vector<exec::SourceFile> all_files_;
  mutable MapWindow window_;
};

}  // namespace shardtool::api
