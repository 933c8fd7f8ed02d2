#pragma once

#include <string>
#include <vector>

#include "lib/engine/diagnosis/verdict.h"
#include "lib/engine/side.h"

namespace shardtool::engine {

/// Looks at the bytes behind a fault and says in words what is wrong with them: fills `diagnosis`,
/// and `tensor` and `rank` of the first part that is not what the whole model has there. Leaves a
/// fault that has its words as it is.
///
/// The tensors of the faulty step come first, then those of the steps before it, then of those
/// after it; the first step with a difference is told, or that a device has all of another layer.
/// Where all bytes are the whole model's, the fault is in what the layout says of them, or between
/// devices; tensors of another dtype are not compared. Reads the layer once more, in chunks of
/// about 1 MiB; numbers per row and column are kept. Throws what reading throws.
void diagnose(const Side& whole, const Side& shards, Fault& fault);

/// What is in another place than in the whole model: one text per op of a layer whose bytes differ.
std::vector<std::string> differences(const Side& whole, const Side& shards, size_t layer);

}  // namespace shardtool::engine
