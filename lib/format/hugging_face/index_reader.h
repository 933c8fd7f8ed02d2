#pragma once

#include "lib/format/reader.h"

namespace shardtool::format {

/// Files under an index.json that maps every tensor to its file: safetensors files, and torch
/// files.
extern const Reader kSafetensorsIndexReader;
extern const Reader kTorchIndexReader;

/// Compares the usual index of safetensors files with the headers of an opened checkpoint that was
/// read by another list of its files. Reports kIndexInvalid, also for an index that cannot be read.
/// Warns if the folder has none although the files are numbered as those of an index.
void check_index_beside(Checkpoint& checkpoint, const FolderListing& listing,
                        const ProblemSink& report);

}  // namespace shardtool::format
