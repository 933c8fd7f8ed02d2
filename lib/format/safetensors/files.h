#pragma once

#include <string>

#include "lib/format/writer.h"

namespace shardtool::format::safetensors {

/// The row of safetensors in writer_table(): see Writer. The summary is Hugging Face's index of a
/// checkpoint in several files.
FilePlan plan_files(const FileRequest& request);
void frame_file(const PlannedFile& file, const TensorTable& tensors, const FrameSink& write);
std::string index_name(bool is_whole, size_t files);
void write_index(const PlacedTensors& tensors, const Sink& write);

}  // namespace shardtool::format::safetensors
