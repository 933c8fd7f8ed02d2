#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/checkpoint/safetensors/safetensors.h"

namespace shardtool::checkpoint {

/// Data of our files begins at a multiple of this, so that whole pages can bypass the page cache.
inline constexpr i64 kDataAlignment = 4096;

/// Of a tensor whose bytes do not lie side by side in one file.
inline constexpr i64 kNoOrigin = -1;

/// Tensors, looked up by number: files are planned for many, and nothing is held twice.
struct TensorTable {
  /// As a file has it: of a shard, the local shape.
  struct Tensor {
    std::string_view name;
    Dtype dtype = Dtype::kF32;
    Shape shape;
  };
  size_t size = 0;
  std::function<Tensor(size_t)> at;

  TensorTable(size_t count, std::function<Tensor(size_t)> tensor)
      : size(count), at(std::move(tensor)) {}
  /// Of tensors that outlive it.
  explicit TensorTable(std::span<const TensorSpec> tensors);
};

/// A safetensors file that is to be written: what its header and its data will be.
struct PlannedFile {
  std::string name;
  safetensors::Metadata metadata;
  std::vector<size_t> members;  ///< numbers of its tensors, in the order of their data
  i64 data_begin = 0;           ///< the bytes of the header with its length
  i64 size = 0;                 ///< of the file, bytes
  std::string header_xxh3;
};

/// Where a tensor of a plan will lie.
struct PlannedPlace {
  int file = 0;    ///< index into FilePlan::files
  i64 offset = 0;  ///< absolute, bytes
};

/// The files of one rank, or of a whole checkpoint.
struct FilePlan {
  std::vector<PlannedFile> files;
  std::vector<PlannedPlace> places;  ///< one per tensor given
};

/// The first `data_begin` bytes of a file of a plan for these tensors.
std::string header_text(const PlannedFile& file, const TensorTable& tensors);

/// One rank's shards (local shapes) in files model-rank-{r}-part-{p}.safetensors. Inside a file,
/// tensors of whole pages come first and the order is kept otherwise. A file's data is at most
/// `max_file_size`, but for a single tensor that is larger. A rank without tensors gets one empty
/// file. Throws kLimit when a header grows beyond what the format allows.
///
/// `origins`, where given, has for each tensor the position in a file that its bytes come from, or
/// kNoOrigin: data then begins where most bytes lie at the same place in their page as there, so
/// that file systems can let both files share the pages.
FilePlan plan_rank_files(i64 rank, const TensorTable& shards, i64 max_file_size,
                         std::span<const i64> origins = {});

/// A whole checkpoint: model.safetensors, or model-00001-of-0000N.safetensors and an index.
FilePlan plan_whole_files(const TensorTable& tensors, i64 max_file_size,
                          std::span<const i64> origins = {});

/// The text of model.safetensors.index.json; nothing for a single file.
std::optional<std::string> index_text(const FilePlan& plan, const TensorTable& tensors);

}  // namespace shardtool::checkpoint
