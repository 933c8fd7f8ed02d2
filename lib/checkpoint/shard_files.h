#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardtool/base/tensor_spec.h"

namespace shardtool::checkpoint {

/// Data of our files begins at a multiple of this, so that whole pages can bypass the page cache.
inline constexpr i64 kDataAlignment = 4096;

/// Of a tensor whose bytes do not lie side by side in one file.
inline constexpr i64 kNoOrigin = -1;

/// A safetensors file that is to be written: everything but its data.
struct PlannedFile {
  std::string name;
  std::string header;  ///< the 8 length bytes and the padded header
  i64 size = 0;        ///< of the file, bytes
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

/// One rank's shards (local shapes) in files model-rank-{r}-part-{p}.safetensors. Inside a file,
/// tensors of whole pages come first and the order is kept otherwise. A file's data is at most
/// `max_file_size`, but for a single tensor that is larger. A rank without tensors gets one empty
/// file. Throws kLimit when a header grows beyond what the format allows.
///
/// `origins`, where given, has for each tensor the position in a file that its bytes come from, or
/// kNoOrigin: data then begins where most bytes lie at the same place in their page as there, so
/// that file systems can let both files share the pages.
FilePlan plan_rank_files(i64 rank, std::span<const TensorSpec> shards, i64 max_file_size,
                         std::span<const i64> origins = {});

/// A whole checkpoint: model.safetensors, or model-00001-of-0000N.safetensors and an index.
FilePlan plan_whole_files(std::span<const TensorSpec> tensors, i64 max_file_size,
                          std::span<const i64> origins = {});

/// The text of model.safetensors.index.json; nothing for a single file.
std::optional<std::string> index_text(const FilePlan& plan, std::span<const TensorSpec> tensors);

}  // namespace shardtool::checkpoint
