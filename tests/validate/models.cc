#include "tests/golden/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/api/transform.h"
#include "tests/validate/made_model.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;

/// Folder of the models that several tests split; deleted when the process ends.
const TempFolder& folder() {
  static const TempFolder kFolder;
  return kFolder;
}

constexpr i64 kBlock = 16;

void write_fp8(const std::string& path, bool is_per_row, const std::string& suffix) {
  ModelSizes sizes;
  sizes.layers = 2;
  sizes.has_biases = false;
  constexpr i64 kAllColumns = i64{1} << 20;
  write_checkpoint(path, is_per_row ? quantised(made_tensors(sizes), 1, kAllColumns, suffix)
                                    : quantised(made_tensors(sizes), kBlock, kBlock, suffix));
  auto config = nlohmann::json::parse(made_config(sizes));
  config["quantization_config"] = {{"quant_method", "fp8"}};
  if (!is_per_row) config["quantization_config"]["weight_block_size"] = {kBlock, kBlock};
  std::ofstream(path + "/config.json") << config.dump();
}

void write_made(const std::string& name, const std::string& path) {
  ModelSizes sizes = prototype();
  if (name == "fp8") return write_fp8(path, false, "_scale_inv");
  if (name == "fp8 per row") return write_fp8(path, true, "_scale");
  if (name == "fp8 with scales of their own name") return write_fp8(path, false, ".scale");
  if (name == "other prototype") sizes.seed = 2;
  if (name == "nine heads") {
    sizes.heads = sizes.kv_heads = 9;
    sizes.sparse_layers.clear();
  }
  if (name == "97 words") sizes.vocab = 97;
  Tensors tensors = made_tensors(
      sizes, name == "truncated prototype" ? Narrowing::kTruncate : Narrowing::kNearest);
  if (name == "prototype with NaN") {
    Bytes& bytes = tensors.at("model.layers.2.mlp.up_proj.weight").bytes;
    bytes[0] = 0xc0;
    bytes[1] = 0x7f;
  }
  if (name == "prototype with a NaN norm") {
    Bytes& bytes = tensors.at("model.layers.2.input_layernorm.weight").bytes;
    bytes[0] = 0xc0;
    bytes[1] = 0x7f;
  }
  if (name == "mislabelled prototype") {
    for (auto& [tensor, content] : tensors) content.spec.dtype = Dtype::kF16;
  }
  if (name == "wide prototype") tensors = widened(tensors);
  if (name == "half prototype") tensors = halved(widened(tensors));
  std::string config = made_config(sizes);
  if (name == "tied prototype") {
    // Stores both tied names, with equal bytes.
    Tensor head = tensors.at("model.embed_tokens.weight");
    head.spec.name = "lm_head.weight";
    tensors["lm_head.weight"] = std::move(head);
    auto document = nlohmann::json::parse(config);
    document["tie_word_embeddings"] = true;
    config = document.dump();
  }
  write_checkpoint(path, tensors, name == "prototype in two files" ? 2 : 1);
  std::ofstream(path + "/config.json") << config;
}

}  // namespace

std::string model_folder(const std::string& name) {
  if (std::ranges::binary_search(golden::model_names(), name)) return golden::model_folder(name);
  const std::string path = folder() / ("whole " + name);
  if (!fs::exists(path)) write_made(name, path);
  return path;
}

Mutation over_mesh(std::string number, std::string what, std::string model, std::string mesh,
                   std::vector<std::string> words, std::function<void(const ShardSet&)> apply,
                   const Signals& signals) {
  return {std::move(number), std::move(what),  std::move(model), std::move(mesh),
          signals,           std::move(words), std::move(apply)};
}

Mutation over_two(std::string number, std::string what, std::string model,
                  std::vector<std::string> words, std::function<void(const ShardSet&)> apply,
                  const Signals& signals) {
  return over_mesh(std::move(number), std::move(what), std::move(model), "tp=2", std::move(words),
                   std::move(apply), signals);
}

const std::vector<std::string>& every_model() {
  static const std::vector<std::string> kModels = [] {
    std::vector<std::string> models = golden::model_names();
    models.emplace_back("prototype");
    return models;
  }();
  return kModels;
}

std::string split_copy(const std::string& model, const std::string& mesh,
                       const TempFolder& copies) {
  const std::string kept = folder() / fmt::format("{} over {}", model, mesh);
  if (!fs::exists(kept)) {
    api::SplitOptions options;
    options.source = model_folder(model);
    options.mapping.mesh = mesh::parse_mesh(mesh);
    if (model == "97 words") options.mapping.settings = {{"axes.vocab.uneven", "pad"}};
    options.write.output = kept;
    api::split(options);
  }
  const std::string copy = copies / "parts";
  fs::copy(kept, copy, fs::copy_options::recursive);
  return copy;
}

}  // namespace shardtool::test
