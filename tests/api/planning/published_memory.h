#pragma once

#include <string>
#include <vector>

#include "lib/api/planning/plan_memory.h"
#include "lib/mapping/document/config.h"
#include "tests/api/published_models.h"

namespace shardtool::api {

/// Resolves the model's preset on a mesh.
AppliedMapping applied_to(const test::PublishedModel& model, const mapping::ModelConfig& config,
                          const std::string& mesh);

/// Returns the memory of a published model. Notes go to `told`; without it there must be none.
MemoryReport memory(const test::PublishedModel& model, const std::string& mesh,
                    const PlanOptions& options = {}, std::vector<std::string>* told = nullptr);

/// Bytes of a rank's weights of one class.
i64 of_class(const MemoryReport& report, size_t rank, const std::string& name);
/// Elements of all tensors.
i64 parameters(const test::PublishedModel& model);
/// Headers and config.json of a small model of tests/golden.
test::PublishedModel golden_model(const std::string& name);

}  // namespace shardtool::api
