#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/format/shard_files.h"

namespace shardtool::format {

/// Tensors to place in files: those of one rank, or all of a whole checkpoint.
struct FileRequest {
  const TensorTable& tensors;
  i64 max_file_size = 0;
  std::optional<i64> rank = {};       ///< absent: a whole checkpoint
  std::span<const i64> origins = {};  ///< see plan_rank_files
  std::string_view framework = kDefaultFramework;
  NameOfPart name_of = {};  ///< empty: the names of the plain layout
};

/// Receives bytes at an offset of a file.
using FrameSink = std::function<void(i64 offset, std::string_view bytes)>;

/// Tensor of an output with the places of its parts, for the file that describes the output.
struct PlacedTensor {
  struct Part {
    Shape begin;  ///< global index at which it begins on every axis, for parts that are boxes
    Shape shape;
    int file = 0;
    i64 offset = 0;  ///< of its data
  };
  std::string_view name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  std::vector<Part> parts;
};

/// All tensors of an output, built one at a time.
struct PlacedTensors {
  std::span<const PlannedFile> files;
  size_t size = 0;
  std::function<PlacedTensor(size_t)> at;
};

/// Frames tensors in files: one row of writer_table() per format.
struct Writer {
  std::string_view name;  ///< in layouts and manifests
  /// Places tensors in files. Throws the errors of planning.
  FilePlan (*plan)(const FileRequest& request);
  /// Writes all bytes of a planned file that are not data, by ascending offset, for the tensors
  /// that it was planned for.
  void (*frame)(const PlannedFile& file, const TensorTable& tensors, const FrameSink& write);
  /// Name of the file that describes an output of so many files, or empty if it needs none.
  std::string (*summary_name)(bool is_whole, size_t files);
  /// Writes that file.
  void (*summarize)(const PlacedTensors& tensors, const safetensors::Sink& write);
};

std::span<const Writer> writer_table();
/// Returns the row of a format. Throws kInternal for an unknown one.
const Writer& find_writer(std::string_view name);

}  // namespace shardtool::format
