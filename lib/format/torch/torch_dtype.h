#pragma once

#include <optional>
#include <string_view>

#include "lib/base/dtype.h"
#include "lib/format/torch/pickle_tree.h"

namespace shardtool::format::torch {

/// Dtype of a global such as torch.bfloat16. Nullopt for other values, and for dtypes that
/// safetensors lacks.
std::optional<Dtype> dtype_of(PickleValue global);

/// Dtype of a storage class such as torch.BFloat16Storage. Nullopt for other values: quantised and
/// wide complex storages, and torch.storage.UntypedStorage, which counts bytes.
std::optional<Dtype> storage_dtype_of(PickleValue global);

}  // namespace shardtool::format::torch
