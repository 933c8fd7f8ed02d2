#pragma once

#include <optional>
#include <vector>

#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/transfer/survey.h"
#include "lib/check/data/data.h"
#include "lib/check/findings.h"

namespace shardtool::api {

/// Adds an error about the chosen mapping, at its file or, for one without a file, at the
/// checkpoint.
void add_mapping_error(const Error& error, const MappingChoice& choice,
                       const LogicalCheckpoint& logical, check::Findings& findings);

/// Checks shards without a manifest, `surveyed.foreign`, against the mapping. `config` is that of
/// the model, or null. Returns their tensors for reading data; nullopt if the mapping cannot be
/// applied, which is a finding.
std::optional<std::vector<check::DataTensor>> check_foreign(const Surveyed& surveyed,
                                                            const MappingChoice& choice,
                                                            const mapping::ModelConfig* config,
                                                            check::Findings& findings);

}  // namespace shardtool::api
