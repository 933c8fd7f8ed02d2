#pragma once

#include <optional>
#include <string_view>

#include "lib/base/dtype.h"

namespace shardtool::format::dcp {

/// Modules of the classes in `.metadata`.
inline constexpr std::string_view kMetadataModule = "torch.distributed.checkpoint.metadata";
inline constexpr std::string_view kFilesModule = "torch.distributed.checkpoint.filesystem";

/// Names of a dtype in PyTorch.
struct TorchNames {
  Dtype dtype;
  std::string_view name;     ///< torch.NAME, e.g. "bfloat16"
  std::string_view storage;  ///< torch.NAME, e.g. "BFloat16Storage"; empty: only untyped storages
};

/// Returns the names, or null for a dtype that PyTorch lacks or whose shapes it counts in another
/// unit (torch/csrc/utils/tensor_dtypes.cpp, torch/storage.py, 2.13).
const TorchNames* torch_names(Dtype dtype);
/// Returns the dtype torch.NAME, or nullopt.
std::optional<Dtype> dtype_of_torch(std::string_view name);

}  // namespace shardtool::format::dcp
