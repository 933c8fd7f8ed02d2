#pragma once

#include "lib/format/reader.h"

namespace shardtool::format::torch {

/// One file of torch.save, or the weights of a folder: pytorch_model.bin, parts that are complete
/// by their names, or the only such file.
extern const Reader kReader;

/// Adds the tensors of an open file of torch.save to a checkpoint, with a warning that names its
/// entries that are no tensors. Throws the errors of read_archive and state_dict.
void read_torch_file(Checkpoint& checkpoint, SourceFile& source, const store::File& file,
                     const ProblemSink& report);

}  // namespace shardtool::format::torch
