// Encoders published without a head: sentence embeddings are the last layer's output.
#include <doctest/doctest.h>

#include <filesystem>

#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/golden/models.h"
#include "tests/support/checkpoint_files.h"

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;

/// Writes the golden model without the tensors whose names begin with one of `heads`.
void write_headless(const std::string& family, const std::vector<std::string>& heads,
                    const std::string& folder) {
  const std::string& whole = golden::model_folder(family);
  Tensors tensors = read_tensors(whole, "model");
  std::erase_if(tensors, [&heads](const auto& tensor) {
    return std::ranges::any_of(
        heads, [&](const std::string& head) { return tensor.first.starts_with(head); });
  });
  write_checkpoint(folder, tensors);
  fs::copy(whole + "/config.json", folder);
}

TEST_CASE("an encoder without a head is run to its last layer") {
  for (const char* family :
       {"bert", "roberta", "distilbert", "electra", "deberta_v2", "modernbert"}) {
    for (const char* mesh : {"tp=2", "pp=2,tp=2"}) {
      CAPTURE(family);
      CAPTURE(mesh);
      const TempFolder folder;
      write_headless(family,
                     {"cls.", "lm_head", "lm_predictions", "vocab_", "generator_", "head.",
                      "decoder.", "bert.pooler"},
                     folder / "whole");
      api::SplitOptions split;
      split.source = folder / "whole";
      split.mapping.mesh = mesh::parse_mesh(mesh);
      split.write.output = folder / "parts";
      api::split(split);
      api::ValidateOptions options;
      options.sources = {split.write.output};
      options.reference = split.source;
      options.resources.threads = 1;
      const auto report = api::validate(options);
      CHECK(report.outcome == engine::Outcome::kPass);
      CHECK(report.coverage == 100);
    }
  }
}

}  // namespace
}  // namespace shardtool::test
