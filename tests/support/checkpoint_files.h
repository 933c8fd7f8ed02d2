#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "tests/support/reference.h"
#include "tests/support/temp_folder.h"

/// Checkpoints as files, written and read by the tests' own few lines.
namespace shardtool::test {

using reference::Bytes;

struct Tensor {
  TensorSpec spec;
  Bytes bytes;
};
using Tensors = std::map<std::string, Tensor>;

/// A tensor whose elements differ from their neighbours.
Tensor numbered_tensor(const std::string& name, Dtype dtype, const Shape& shape);

/// A tensor of any bytes that no tensor of another name has: one in the place of another is seen.
Tensor distinct_tensor(const TensorSpec& spec);

/// Writes folder/model.safetensors, or several files and an index when `files` > 1.
void write_checkpoint(const std::string& folder, const Tensors& tensors, int files = 1);

/// Every tensor of every safetensors file of a folder whose name begins with `prefix`.
Tensors read_tensors(const std::string& folder, const std::string& prefix);

/// name -> content of every file of a folder.
std::map<std::string, std::string> folder_content(const std::string& folder);

}  // namespace shardtool::test
