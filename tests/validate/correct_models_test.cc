// No false alarm: random models that are split correctly on random meshes pass.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "lib/api/validate.h"
#include "lib/base/error.h"
#include "tests/validate/made_model.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

constexpr int kModels = 60;
constexpr int kMeshes = 3;

class Choices {
 public:
  explicit Choices(std::uint32_t seed) : engine_(seed) {}
  i64 one_of(const std::vector<i64>& values) {
    return values[std::uniform_int_distribution<size_t>(0, values.size() - 1)(engine_)];
  }
  bool coin() { return one_of({0, 1}) == 1; }

 private:
  std::mt19937 engine_;
};

ModelSizes random_sizes(Choices& random) {
  ModelSizes sizes;
  sizes.layers = random.one_of({1, 2, 3, 4});
  sizes.hidden = random.one_of({24, 40, 64});
  sizes.kv_heads = random.one_of({1, 2, 3, 4});
  sizes.heads = sizes.kv_heads * random.one_of({1, 2, 3, 4});
  sizes.head_dim = random.one_of({4, 6, 8, 16});
  sizes.mlp = random.one_of({30, 48, 97});
  sizes.vocab = random.one_of({61, 96, 130});
  sizes.has_qk_norm = random.coin();
  sizes.has_biases = random.coin();
  sizes.is_tied = random.coin();
  sizes.dtype = random.coin() ? Dtype::kBF16 : Dtype::kF32;
  sizes.experts = random.one_of({2, 4, 6});
  sizes.expert_mlp = random.one_of({8, 20, 33});
  sizes.seed = static_cast<std::uint64_t>(random.one_of({1, 2, 3, 4, 5, 6, 7}));
  for (i64 layer = 0; layer < sizes.layers && sizes.has_qk_norm; ++layer) {
    if (random.coin()) sizes.sparse_layers.push_back(layer);
  }
  return sizes;
}

/// Returns a tp that the heads allow: whole KV groups, or copies of KV heads on several devices.
i64 random_tp(Choices& random, const ModelSizes& sizes) {
  std::vector<i64> allowed;
  for (i64 tp = 1; tp <= 8; ++tp) {
    const bool replicates = tp % sizes.kv_heads == 0 && sizes.heads % tp == 0;
    if (tp <= sizes.kv_heads || replicates) allowed.push_back(tp);
  }
  return random.one_of(allowed);
}

std::string random_mesh(Choices& random, const ModelSizes& sizes) {
  std::string mesh;
  const i64 pp = sizes.layers > 1 ? random.one_of({1, 1, 2}) : 1;
  if (pp > 1) mesh += fmt::format("pp={},", pp);
  if (random.one_of({0, 0, 1}) == 1) mesh += "dp=2,";
  if (!sizes.sparse_layers.empty() && random.coin()) mesh += "ep=2,";
  return mesh + fmt::format("tp={}", random_tp(random, sizes));
}

/// Describes the first fault in the report; empty if there is none.
std::string wrong_in(const api::ValidateReport& report) {
  std::string wrong = report.passes() ? "" : std::string(to_text(report.outcome));
  for (const api::ValidateTier& tier : report.tiers) {
    if (is_ordered(tier.kind) && !tier.is_proof())
      wrong += fmt::format(" {} no proof", to_text(tier.kind));
    if (tier.mismatches > 0) wrong += fmt::format(" {}: {}", number_of(tier.kind), tier.mismatches);
  }
  for (const engine::Fault& fault : report.faults) wrong += " " + fault.diagnosis;
  if (report.reordered > 0 || !report.untested.empty()) wrong += " reordered or untested";
  constexpr size_t kTiers = 5;
  if (report.tiers.size() != kTiers) wrong += " not all tiers ran";
  return wrong;
}

api::ValidateReport report_on(const TempFolder& folder, const std::string& mesh,
                              std::uint64_t seed) {
  api::SplitOptions split;
  split.source = folder / "whole";
  split.mapping.mesh = mesh::parse_mesh(mesh);
  split.mapping.allow_empty_shards = true;
  split.write.output = folder / mesh;
  if (!std::filesystem::exists(split.write.output)) api::split(split);
  api::ValidateOptions options;
  options.sources = {split.write.output};
  options.reference = split.source;
  options.seed = seed;
  options.resources.threads = 1;
  options.ordered = true;
  return api::validate(options);
}

TEST_CASE(
    "60 random models that are split as they are to be pass, with no value and no bit different") {
  for (int i = 0; i < kModels; ++i) {
    Choices random(static_cast<std::uint32_t>(i));
    const ModelSizes sizes = random_sizes(random);
    const TempFolder folder;
    write_model(folder / "whole", sizes);
    CAPTURE(i);
    CAPTURE(made_config(sizes));
    for (int k = 0; k < kMeshes; ++k) {
      const std::string mesh = random_mesh(random, sizes);
      CAPTURE(mesh);
      try {
        CHECK(wrong_in(report_on(folder, mesh, static_cast<std::uint64_t>(i))) == "");
      } catch (const Error& error) {
        FAIL_CHECK(error.message());
      }
    }
  }
}

/// An embedding table that is also the head: read once for the head, and looked up for three
/// tokens.
TEST_CASE("every byte of a tied model is read once per side") {
  const TempFolder folder;
  api::ValidateOptions options;
  options.sources = {split_copy("gemma", "tp=2", folder)};
  options.reference = model_folder("gemma");
  options.quick = true;
  const api::ValidateReport report = api::validate(options);
  CHECK(report.outcome == engine::Outcome::kPass);
  i64 stored = 0;
  for (const std::string& path : {options.reference, options.sources.front()}) {
    for (const auto& file : std::filesystem::directory_iterator(path)) {
      if (file.path().extension() == ".safetensors") stored += static_cast<i64>(file.file_size());
    }
  }
  constexpr i64 kLookedUp = 2 * 3;
  constexpr i64 kRowBytes = 48 * 4;
  CHECK(report.bytes_read <= stored + kLookedUp * kRowBytes);
}

}  // namespace
}  // namespace shardtool::test
