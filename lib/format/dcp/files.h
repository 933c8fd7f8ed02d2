#pragma once

#include <string>

#include "lib/format/writer.h"

namespace shardtool::format::dcp {

/// File that describes a checkpoint of torch.distributed.checkpoint. It is written last.
inline constexpr std::string_view kMetadataName = ".metadata";

/// The row of dcp in writer_table(): see Writer. A data file is blobs end to end, one per part of a
/// tensor (torch/distributed/checkpoint/filesystem.py, PyTorch 2.13); its metadata has a chunk for
/// each. Parts must be boxes.
FilePlan plan_files(const FileRequest& request);
void frame_file(const PlannedFile& file, const TensorTable& tensors, const FrameSink& write);
std::string metadata_name(bool is_whole, size_t files);
void write_metadata(const PlacedTensors& tensors, const safetensors::Sink& write);

}  // namespace shardtool::format::dcp
