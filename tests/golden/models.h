#pragma once

#include <string>
#include <vector>

/// The small models of tests/golden: checkpoints whose weights follow from models/NAME.json, and
/// the values that the transformers library computes from them. README.md says how they are made.
namespace shardtool::golden {

/// Returns the names of all models, sorted.
const std::vector<std::string>& model_names();

/// Returns a folder with config.json and model.safetensors. The first call for a name writes them;
/// they are deleted when the process ends.
const std::string& model_folder(const std::string& name);

/// Returns the file of values that the library computes from a model.
std::string expected_file(const std::string& name);

/// Writes the model's config.json and model.safetensors.
void write_model(const std::string& name, const std::string& folder);

/// A model's data as its description and its weights give it.
struct Checksums {
  unsigned long described = 0, written = 0;
};
Checksums checksums(const std::string& name);

}  // namespace shardtool::golden
