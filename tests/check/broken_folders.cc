#include <filesystem>

#include "tests/check/broken_checkpoints.h"
#include "tests/support/safetensors_text.h"

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;
using check::CheckRule;

api::CheckOptions for_the_hub(std::string source) {
  api::CheckOptions options = options_for(std::move(source));
  options.profile = "hub";
  return options;
}

api::CheckOptions large_file(const TempFolder& folder) {
  const std::string path = folder.write(
      "m.safetensors",
      safetensors_bytes(
          R"({"a":{"dtype":"U8","shape":[500000000000],"data_offsets":[0,500000000000]}})", ""));
  fs::resize_file(path, fs::file_size(path) + 500'000'000'000);
  return for_the_hub(path);
}

api::CheckOptions many_files(const TempFolder& folder) {
  const std::string model = copy_sample(folder);
  for (int i = 0; i < 10'000; ++i) folder.write("model/" + std::to_string(i), "");
  return for_the_hub(model);
}

api::CheckOptions odd_name(const TempFolder& folder) {
  return for_the_hub(write_tensors(folder, "my model.safetensors", {{"a", "U8", {1}}}));
}

api::CheckOptions pickle_beside(const TempFolder& folder) {
  const std::string model = copy_sample(folder);
  folder.write("model/pytorch_model.bin", "PK");
  return options_for(model);
}

api::CheckOptions link_outside(const TempFolder& folder) {
  const std::string model = copy_sample(folder);
  folder.write("secret.txt", "x");
  fs::create_symlink("../secret.txt", model + "/tokenizer.txt");
  return options_for(model);
}

api::CheckOptions path_outside(const TempFolder& folder) {
  const std::string model = copy_sample(folder);
  edit(model + "/model.safetensors.index.json", "\"model-00001-of-00002.safetensors\"",
       "\"../model-00001-of-00002.safetensors\"");
  return options_for(model);
}

api::CheckOptions own_code(const TempFolder& folder) {
  const std::string model = copy_sample(folder);
  edit(model + "/config.json", R"("model_type")",
       R"("auto_map": {"AutoModel": "model.Mine"}, "model_type")");
  return options_for(model);
}

}  // namespace

std::vector<Broken> broken_folders() {
  return {
      {CheckRule::kFileTooLarge, large_file},  {CheckRule::kTooManyFiles, many_files},
      {CheckRule::kFileName, odd_name},        {CheckRule::kPickle, pickle_beside},
      {CheckRule::kLinkOutside, link_outside}, {CheckRule::kPathTraversal, path_outside},
      {CheckRule::kRemoteCode, own_code},
  };
}

}  // namespace shardtool::test
