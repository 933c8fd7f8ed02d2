#pragma once

#include <optional>

#include "lib/base/error.h"
#include "lib/format/checkpoint.h"

namespace shardtool::api {

/// Holds the names of tensors that the files store under another name, or as a part of another one,
/// against the "store" rules of the manifest's mapping: nothing else tells that such a name was
/// changed. Returns kManifestInvalid for the first tensor that no rule stores under the recorded
/// name. Requires opened.manifest. Throws if its mapping is invalid.
std::optional<Error> misnamed_tensor(const format::Checkpoint& opened);

}  // namespace shardtool::api
