#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "tests/support/reference.h"
#include "tests/support/temp_folder.h"

/// Checkpoint files, written and read independently of the library.
namespace shardtool::test {

using reference::Bytes;

struct Tensor {
  TensorSpec spec;
  Bytes bytes;
};
using Tensors = std::map<std::string, Tensor>;

/// A tensor whose neighbouring elements differ.
Tensor numbered_tensor(const std::string& name, Dtype dtype, const Shape& shape);

/// A tensor with bytes unique to its name, so that an exchange is detected.
Tensor distinct_tensor(const TensorSpec& spec);

/// Writes folder/model.safetensors, or several files and an index when `files` > 1.
void write_checkpoint(const std::string& folder, const Tensors& tensors, int files = 1);

/// Reads all tensors of the folder's safetensors files whose names begin with `prefix`.
Tensors read_tensors(const std::string& folder, const std::string& prefix);

/// Changes one bit in the middle of a tensor's last shard, which the folder's manifest places. A
/// second call restores it.
void flip_bit_of_last_shard(const std::string& folder, const std::string& tensor);

/// Content of every file of a folder, by name.
std::map<std::string, std::string> folder_content(const std::string& folder);

}  // namespace shardtool::test
