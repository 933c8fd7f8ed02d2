#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/format/safetensors/safetensors.h"

namespace shardtool::format {

/// Data of written files begins at a multiple of this, so that whole pages can bypass the page
/// cache.
inline constexpr i64 kDataAlignment = 4096;

/// "format" of a header's metadata unless the source's files have another.
inline constexpr std::string_view kDefaultFramework = "pt";

/// Origin of a tensor whose bytes are not contiguous in one file.
inline constexpr i64 kNoOrigin = -1;

/// Tensors, looked up by number, so that planning many files holds no copies.
struct TensorTable {
  /// Tensor as stored in a file: for a shard, with the local shape.
  struct Tensor {
    std::string_view name;
    Dtype dtype = Dtype::kF32;
    Shape shape;
  };
  size_t size = 0;
  std::function<Tensor(size_t)> at;
  /// Global index at which a shard begins on every axis, for shards that are boxes. If set, the
  /// headers have torch's DCP_SHARDING_INFO.
  std::function<Shape(size_t)> begin_of = {};

  TensorTable(size_t count, std::function<Tensor(size_t)> tensor)
      : size(count), at(std::move(tensor)) {}
  /// Table of tensors that outlive it.
  explicit TensorTable(std::span<const TensorSpec> tensors);
};

/// Data of a tensor and the bytes around it in a file: [begin, end).
struct FramedData {
  i64 begin = 0;
  i64 data = 0;  ///< offset of the tensor's data
  i64 end = 0;
};

/// Planned file: its tensors, and the bytes around them.
struct PlannedFile {
  std::string name;
  safetensors::Metadata metadata;       ///< safetensors only; without DCP_SHARDING_INFO
  std::vector<size_t> members;          ///< numbers of its tensors, in the order of their data
  i64 data_begin = 0;                   ///< bytes before the first tensor's data
  i64 size = 0;                         ///< file size in bytes
  std::string header_xxh3;              ///< of all bytes that are not data, in order
  std::vector<FramedData> frames = {};  ///< per member; empty if one header frames them all
};

/// Planned position of a tensor.
struct PlannedPlace {
  int file = 0;    ///< index into FilePlan::files
  i64 offset = 0;  ///< absolute, bytes
};

/// Files of one rank, or of a whole checkpoint.
struct FilePlan {
  std::vector<PlannedFile> files;
  std::vector<PlannedPlace> places;  ///< one per tensor given
};

/// Writes the first `data_begin` bytes of a planned file for these tensors.
void write_header(const PlannedFile& file, const TensorTable& tensors,
                  const safetensors::Sink& write);
/// Same as one text.
std::string header_text(const PlannedFile& file, const TensorTable& tensors);

/// Name of part `part` of the `parts` files of one plan.
using NameOfPart = std::function<std::string(size_t part, size_t parts)>;

/// Permission for one file to hold several tensors of one name, which stand side by side in a
/// table.
enum class SameName { kInOneFile, kInOtherFiles };

/// Distributes tensors, by number, to files: a new file begins when the next tensor does not fit.
/// Its data is at most `max_file_size`, except for a single larger tensor. Without tensors there is
/// one empty file. With kInOtherFiles, all first tensors of their names come before all second
/// ones. Throws kSubByteCut for a tensor without a whole number of bytes.
std::vector<std::vector<size_t>> deal_out(const TensorTable& tensors, i64 max_file_size,
                                          SameName same_name);

/// Bytes of a tensor's data. Throws kSubByteCut if they are no whole number.
i64 data_bytes(const TensorTable::Tensor& tensor);

/// Plans one rank's shards (local shapes) in files model-rank-{r}-part-{p}.safetensors, or with the
/// names that `name_of` gives. Inside a file, tensors of whole pages come first, and the others in
/// their order or, if that leaves one at no multiple of its element's bytes, larger elements first.
/// See deal_out for the sizes. Tensors of one name, which stand side by side in `shards`, go to
/// different files. Throws kLimit when a header grows beyond the format's limit.
///
/// `origins`, if given, has for each tensor the file offset of its source bytes, or kNoOrigin: data
/// then begins at the page offset at which most bytes keep the page offset of their source, so that
/// file systems can share the pages of both files.
FilePlan plan_rank_files(i64 rank, const TensorTable& shards, i64 max_file_size,
                         std::span<const i64> origins = {},
                         std::string_view framework = kDefaultFramework,
                         const NameOfPart& name_of = {});

/// Plans a whole checkpoint: model.safetensors, or model-00001-of-0000N.safetensors and an index.
FilePlan plan_whole_files(const TensorTable& tensors, i64 max_file_size,
                          std::span<const i64> origins = {},
                          std::string_view framework = kDefaultFramework,
                          const NameOfPart& name_of = {});

}  // namespace shardtool::format
