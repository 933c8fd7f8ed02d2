#pragma once

#include "lib/format/reader.h"
#include "lib/format/torch/state_dict.h"

namespace shardtool::format::torch {

/// One file of torch.save, or the weights of a folder: pytorch_model.bin, parts that are complete
/// by their names, or the only such file.
extern const Reader kReader;

/// Reads an open file of torch.save as the next file of a checkpoint: fills the source, and warns
/// of entries that are no tensors. Returns its tensors by offset. Throws the errors of read_archive
/// and state_dict.
StateDict read_state_dict(Checkpoint& checkpoint, SourceFile& source, const store::Reader& file);

/// Same for the archive of the file at `path`.
StateDict read_state_dict(Checkpoint& checkpoint, SourceFile& source, const Archive& archive,
                          const std::string& path);

/// Throws kUnsupported for a rank's part of a distributed tensor, which the file at `path` has.
void require_whole(const NamedSlot& tensor, const std::string& path);

/// Reads like read_state_dict, and adds the tensors to the checkpoint. Throws kUnsupported for a
/// rank's part of a distributed tensor.
void read_torch_file(Checkpoint& checkpoint, SourceFile& source, const store::Reader& file,
                     const ProblemSink& report);

}  // namespace shardtool::format::torch
