#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "lib/api/transform.h"
#include "tests/support/checkpoint_files.h"

/// The golden tables of the layouts.
namespace shardtool::test {

/// All tables, or those of one layout, sorted; of what is written, or of what is "read".
std::vector<std::filesystem::path> tables(const std::string& layout = "",
                                          const std::string& kind = "golden");

/// Draws the weights that the engine's loader read.
Tensors draw(const nlohmann::json& tensors);

/// Writes the model of a table and returns its tensors.
Tensors write_model(const std::string& folder, const nlohmann::json& table);

/// Choice of the flags of a table's mesh.
api::MappingChoice choice_of(const nlohmann::json& flags);

/// Dtype, shape and hash of every tensor, as in the tables.
nlohmann::json rows_of(const Tensors& tensors);

}  // namespace shardtool::test
