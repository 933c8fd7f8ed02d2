#pragma once

#include <string>
#include <vector>

/// The small models of tests/golden: checkpoints whose weights are generated from models/NAME.json,
/// and the values that the transformers library computes with them. README.md describes how they
/// are made.
namespace shardtool::golden {

/// Returns the names of all models, sorted.
const std::vector<std::string>& model_names();

/// Returns a folder with config.json and model.safetensors. The first call for a name writes them;
/// they are deleted when the process ends.
const std::string& model_folder(const std::string& name);

/// Returns the file of values that the library computes from a model.
std::string expected_file(const std::string& name);

/// Returns the folder of a model whose weights are packed in a format, "gptq". Its subfolder "plain"
/// has the same model in plain numbers. make_packed.py writes both during the build.
std::string packed_model(const std::string& format);

/// Writes the model's config.json and model.safetensors.
void write_model(const std::string& name, const std::string& folder);

/// Checksums of a model's data: recorded in its description, and computed from the weights written.
struct Checksums {
  unsigned long described = 0, written = 0;
};
Checksums checksums(const std::string& name);

}  // namespace shardtool::golden
