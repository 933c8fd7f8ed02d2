#pragma once

#include "lib/format/reader.h"

namespace shardtool::format {

/// Files under an index.json that maps every tensor to its file: safetensors files, and torch
/// files.
extern const Reader kSafetensorsIndexReader;
extern const Reader kTorchIndexReader;

}  // namespace shardtool::format
