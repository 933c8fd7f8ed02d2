#pragma once

#include <optional>
#include <string_view>

#include "lib/base/dtype.h"
#include "lib/format/torch/pickle_tree.h"

namespace shardtool::format::torch {

/// Names of a dtype in PyTorch.
struct TorchNames {
  Dtype dtype;
  std::string_view name;     ///< torch.NAME, e.g. "bfloat16"
  std::string_view storage;  ///< torch.NAME, e.g. "BFloat16Storage"; empty: only untyped storages
};

/// Returns the names, or null for a dtype that PyTorch lacks or whose shapes it counts in another
/// unit (torch/csrc/utils/tensor_dtypes.cpp, torch/storage.py, 2.13).
const TorchNames* torch_names(Dtype dtype);

/// Dtype of a global such as torch.bfloat16. Nullopt for other values, and for dtypes that
/// safetensors lacks.
std::optional<Dtype> dtype_of(PickleValue global);

/// Dtype of a storage class such as torch.BFloat16Storage. Nullopt for other values: quantised and
/// wide complex storages, and torch.storage.UntypedStorage, which counts bytes.
std::optional<Dtype> storage_dtype_of(PickleValue global);

}  // namespace shardtool::format::torch
