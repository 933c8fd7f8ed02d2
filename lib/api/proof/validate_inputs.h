#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/transfer/sources/foreign_checkpoint.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/validate.h"
#include "lib/base/error.h"

namespace shardtool::api {

/// The shards to validate, and the model that they are compared with.
struct ValidateInputs {
  MappingChoice mapping;
  LogicalCheckpoint shards;
  std::optional<ForeignCheckpoint> foreign;  ///< used instead of `shards`
  std::optional<LogicalCheckpoint> reference;
  std::optional<mapping::ModelConfig> config;

  const LogicalCheckpoint& proved() const { return foreign ? foreign->shards : shards; }
  /// Tensors that the mapping drops on purpose.
  std::vector<std::string> dropped() const;
};

/// Opens the shards; files of another tool, which have no manifest, are returned instead. Throws
/// the errors of opening.
std::optional<ForeignFiles> open_shards(const ValidateOptions& options, ValidateInputs& inputs);

/// Opens the reference and config.json, and places the files of another tool by them. Throws kUsage
/// if something is missing for that, or if there is nothing to validate; kUnsupported without a
/// config.json; and the errors of opening and of place_foreign_files.
void open_model(const ValidateOptions& options, std::optional<ForeignFiles> foreign,
                ValidateInputs& inputs);

/// Error for a model without a graph, which `why` says. `is_own`: the user gave one.
Error no_graph(const std::string& why, bool is_own);

}  // namespace shardtool::api
