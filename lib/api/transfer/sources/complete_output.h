#pragma once

#include <optional>
#include <string>

#include "lib/api/transfer/output_plan.h"
#include "lib/api/transfer/write_files.h"
#include "lib/format/manifest/manifest.h"

namespace shardtool::api {

/// Returns the manifest of an output that has the form of this run's: it equals the run's in
/// everything but the data, has the files' SHA-256 if requested, and the files have their sizes.
/// Else nullopt. Throws kManifestInvalid.
std::optional<format::Manifest> complete_output(const WriteRun& run, const WriteOptions& options);

/// True if such an output has the values of the run's source, and its files beside the weights.
/// Tensors are compared by digest; the source is read unless its own manifest has them. Tensors of
/// which the output has no digest are compared byte for byte. Throws the errors of reading.
bool has_values_of(const WriteRun& run, const WriteOptions& options,
                   const format::Manifest& manifest);

}  // namespace shardtool::api
