#pragma once

#include <string>
#include <vector>

#include "lib/engine/diagnosis/verdict.h"
#include "lib/engine/side.h"

namespace shardtool::engine {

/// Compares the bytes behind a fault and describes the difference: fills `diagnosis`, and `tensor`
/// and `rank` of the first part that differs from the whole model's. Skips a fault that already has
/// a diagnosis.
///
/// Searches the tensors of the faulty step first, then those of earlier steps, then those of later
/// ones, and describes the first step with a difference, or a device that has all tensors of
/// another layer. If all bytes equal the whole model's, the fault is in the layout's description of
/// them or in the communication; tensors of another dtype are not compared. Reads the layer once
/// more in chunks of about 1 MiB and keeps numbers per row and column. Throws the errors of
/// reading.
void diagnose(const Side& whole, const Side& shards, Fault& fault);

/// Describes differences in placement: one text per op of a layer whose bytes differ.
std::vector<std::string> differences(const Side& whole, const Side& shards, size_t layer);

}  // namespace shardtool::engine
