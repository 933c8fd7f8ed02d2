#pragma once

#include <optional>
#include <string>

#include "lib/base/dtype.h"
#include "lib/base/error.h"
#include "lib/format/torch/pickle_tree.h"

namespace shardtool::format::torch {

/// A storage as a pickle names it.
struct StorageName {
  std::string key;             ///< name of the record, or of the part of a legacy file
  std::optional<Dtype> dtype;  ///< nullopt: untyped, the tensor says it
  i64 numel = 0;               ///< elements; bytes if it is untyped
  i64 bytes = 0;
};

/// Decodes the persistent id ("storage", class, key, location, numel[, view]). Throws kUnsupported
/// for quantised storages, dtypes that safetensors lacks and legacy views, kMalformed for another
/// form.
StorageName storage_name(PickleValue persistent);

/// Formats a global as "torch.FloatStorage", escaped for a message.
std::string name_for_message(PickleValue global);

/// Short description of any value for a message: "an integer", "argparse.Namespace".
std::string describe(PickleValue value);

}  // namespace shardtool::format::torch
