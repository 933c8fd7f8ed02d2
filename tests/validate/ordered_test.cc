// Order-matched runs: the whole model, summed in the shards' order, gives the same bits.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <tuple>

#include "lib/comm/embedded.h"
#include "lib/engine/validation.h"
#include "lib/engine/weights/cut_side.h"
#include "lib/engine/weights/stored_part.h"
#include "lib/model/weight_scales.h"
#include "tests/golden/models.h"
#include "tests/validate/compared.h"
#include "tests/validate/made_model.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

api::ValidateReport ordered_report(const std::string& model, const std::string& parts) {
  api::ValidateOptions options;
  options.sources = {parts};
  options.reference = model_folder(model);
  options.resources.threads = 1;
  options.quick = true;
  options.ordered = true;
  return api::validate(options);
}

/// Returns the names of the order-matched runs that do not prove equal bits.
std::string unproved_in(const api::ValidateReport& report) {
  std::string names;
  int runs = 0;
  for (const api::ValidateTier& tier : report.tiers) {
    if (!is_ordered(tier.kind)) continue;
    ++runs;
    if (!tier.is_proof()) names += fmt::format("{}: {}; ", to_text(tier.kind), tier.mismatches);
  }
  return runs == 2 ? names : "not run";
}

TEST_CASE("shards of every family have every bit of the whole model summed as they are") {
  for (const std::string& model : every_model()) {
    CAPTURE(model);
    const TempFolder folder;
    CHECK(unproved_in(ordered_report(model, split_copy(model, "tp=2", folder))) == "");
  }
}

TEST_CASE("and on meshes of several axes, with uneven heads, padding, stages and experts") {
  const std::pair<std::string, std::string> kCases[] = {{"prototype", "dp=2,ep=2,tp=2"},
                                                        {"prototype", "pp=3,tp=4"},
                                                        {"prototype", "pp=3,dp=2"},
                                                        {"nine heads", "tp=4"},
                                                        {"97 words", "tp=4"},
                                                        {"gpt_oss", "ep=2,tp=2"},
                                                        {"deepseek_v3", "ep=2,tp=2"},
                                                        {"gpt2", "pp=2,tp=4"},
                                                        {"tied prototype", "tp=4"},
                                                        {"dbrx", "ep=2,tp=2"},
                                                        {"stablelm_beside", "tp=4"},
                                                        {"qwen3_next", "ep=2,tp=2"},
                                                        {"qwen3_5_text", "tp=4"},
                                                        {"mamba2", "pp=2,tp=4"},
                                                        {"mamba2", "tp=3"},
                                                        {"mamba2_one_group", "tp=4"},
                                                        {"granitemoehybrid", "ep=2,tp=2"},
                                                        {"nemotron_h_moe", "ep=2,tp=2"},
                                                        {"gemma4_text", "tp=4"},
                                                        {"gemma4_moe", "ep=2,tp=2"},
                                                        {"bamba", "pp=2,tp=4"},
                                                        {"chatglm", "pp=2,tp=4"},
                                                        {"zamba2", "pp=2,tp=2"},
                                                        {"zamba2_one_block", "tp=3"},
                                                        {"gemma4_e2b", "pp=2,tp=4"},
                                                        {"gemma3n_text", "pp=2,tp=4"},
                                                        {"internlm2", "pp=2,tp=2"},
                                                        {"exaone_moe", "ep=2,tp=2"},
                                                        {"codegen", "tp=3"},
                                                        {"bart", "pp=2,tp=4"},
                                                        {"apertus", "pp=2,tp=4"},
                                                        {"lfm2_moe", "ep=2,tp=2"},
                                                        {"falcon_mamba", "tp=3"},
                                                        {"jamba", "pp=3,tp=2"},
                                                        {"minimax", "ep=2,tp=2"},
                                                        {"mimo_v2_flash", "ep=2,tp=2"},
                                                        {"kimi_linear", "pp=2,tp=2"},
                                                        {"glm4v_moe", "ep=2,tp=2"},
                                                        {"internvl_qwen3", "pp=2,tp=2"},
                                                        {"hy_v3", "ep=2,tp=2"},
                                                        {"solar_open", "ep=2,tp=2"},
                                                        {"afmoe", "pp=2,tp=2"},
                                                        {"cwm", "pp=2,tp=2"},
                                                        {"flex_olmo", "ep=2,tp=2"},
                                                        {"minicpm3", "tp=3"},
                                                        {"glm_moe_dsa_taken", "pp=3,tp=2"},
                                                        {"youtu", "pp=2,tp=4"},
                                                        {"jais2", "pp=2,tp=2"},
                                                        {"helium", "tp=4"},
                                                        {"vaultgemma", "tp=4"},
                                                        {"hyperclovax", "tp=4"},
                                                        {"modernbert", "pp=3,tp=2"},
                                                        {"distilbert", "tp=3"},
                                                        {"electra", "pp=2,tp=4"},
                                                        {"deberta_v2", "pp=2,tp=4"},
                                                        {"deberta_v2_places", "tp=3"},
                                                        {"t5_gated", "pp=2,tp=2"},
                                                        {"marian_two", "pp=2,tp=4"},
                                                        {"m2m_100", "pp=2,tp=2"},
                                                        {"pegasus", "tp=3"},
                                                        {"blenderbot", "tp=4"},
                                                        {"gpt_neo", "pp=2,tp=3"},
                                                        {"persimmon", "pp=2,tp=4"},
                                                        {"xglm", "pp=2,tp=2"},
                                                        {"biogpt", "tp=3"},
                                                        {"bitnet", "tp=4"},
                                                        {"cohere2_moe", "ep=3,tp=2"},
                                                        {"cohere2_moe_softmax", "ep=2,tp=2"},
                                                        {"nanochat", "pp=2,tp=2"},
                                                        {"granite_swa", "pp=3,tp=2"},
                                                        {"olmo_hybrid", "tp=4"},
                                                        {"olmo_hybrid_in_place", "pp=2,tp=2"},
                                                        {"longcat_flash", "ep=2,tp=2"},
                                                        {"bailing_hybrid", "ep=2,tp=2"},
                                                        {"laguna", "pp=2,tp=2"},
                                                        {"hy_v4", "pp=2,tp=2"},
                                                        {"hy_v4", "ep=3,tp=2"},
                                                        {"deepseek_v4", "pp=3,tp=2"},
                                                        {"deepseek_v4_flash", "ep=3,tp=2"},
                                                        {"laguna_features", "ep=3,tp=4"},
                                                        {"mellum", "ep=2,tp=4"},
                                                        {"axk1", "ep=2,tp=2"},
                                                        {"mistral4", "pp=2,ep=2"},
                                                        {"granitemoe_swa", "pp=3,tp=2"},
                                                        {"mistral3_mistral4", "ep=3,tp=2"},
                                                        {"kolibri1", "ep=3,tp=2"},
                                                        {"lfm3", "pp=3,tp=2"},
                                                        {"lfm3_plain", "pp=2,tp=4"},
                                                        {"axk2", "ep=2,tp=2"},
                                                        {"exaone4_5", "pp=2,tp=2"},
                                                        {"eurobert", "pp=2,tp=4"},
                                                        {"camembert", "tp=3"},
                                                        {"dots3_note", "ep=3,tp=2"},
                                                        {"gemma4_unified_text", "pp=2,tp=2"},
                                                        {"megatron_bert", "pp=2,tp=4"},
                                                        {"llava_mistral", "tp=2"},
                                                        {"falcon_h1_gated", "tp=4"}};
  for (const auto& [model, mesh] : kCases) {
    CAPTURE(model);
    CAPTURE(mesh);
    const TempFolder folder;
    CHECK(unproved_in(ordered_report(model, split_copy(model, mesh, folder))) == "");
  }
}

TEST_CASE("a bias of a sum has its bits wherever the shards store it") {
  for (const std::string policy : {"replicate", "first", "divide"}) {
    CAPTURE(policy);
    const TempFolder folder;
    api::SplitOptions split;
    split.source = model_folder("gpt2");
    split.mapping.mesh = mesh::parse_mesh("tp=4");
    split.mapping.settings = {{"reduced_bias", policy}};
    split.write.output = folder / "parts";
    api::split(split);
    const auto report = ordered_report("gpt2", split.write.output);
    CHECK(report.passes());
    CHECK(unproved_in(report) == "");
  }
}

TEST_CASE("what is cut from the whole model is what split writes, byte for byte") {
  const std::pair<std::string, std::string> kCases[] = {{"prototype", "dp=2,ep=2,tp=2"},
                                                        {"prototype", "pp=3,tp=4"},
                                                        {"97 words", "tp=4"},
                                                        {"fp8", "tp=2"},
                                                        {"gpt_oss", "ep=2,tp=2"},
                                                        {"gpt2", "tp=4"}};
  for (const auto& [name, mesh] : kCases) {
    CAPTURE(name);
    CAPTURE(mesh);
    const TempFolder folder;
    const Compared model(model_folder(name), split_copy(name, mesh, folder));
    const auto layers = engine::pair_layers(model.whole(), model.shards());
    const engine::CutSide cut(model.whole(), model.shards(), layers);
    const engine::Side& shards = model.shards();
    for (size_t tensor = 0; tensor < shards.tensors.size(); ++tensor) {
      CAPTURE(shards.tensors[tensor].name);
      CHECK(cut.side().tensors[tensor].dtype == shards.tensors[tensor].dtype);
      for (const i64 rank : shards.layouts(tensor).ranks()) {
        const auto part = engine::stored_part(shards, shards, tensor, rank);
        REQUIRE(part.has_value());
        const i64 rows = part->rows.local_size();
        for (i64 outer = 0; outer < part->outer.local_size(); ++outer) {
          CHECK(engine::stored_rows(cut.side(), *part, outer, 0, rows) ==
                engine::stored_rows(shards, *part, outer, 0, rows));
        }
      }
    }
  }
}

engine::TierVerdict ordered_verdict(const Compared& model, int processes, int threads,
                                    const std::string& name) {
  engine::TierVerdict found;
  std::mutex mutex;
  comm::run_embedded(processes, [&](comm::Communicator& comm) {
    engine::ValidationOptions options;
    options.resources.threads = threads;
    options.with_f64 = false;
    options.with_ordered = true;
    const auto verdict = engine::validate(model.whole(), model.shards(), &comm, options);
    const std::lock_guard lock(mutex);
    for (const engine::TierVerdict& tier : verdict.tiers) {
      if (to_text(tier.kind) == name) found = tier;
    }
  });
  return found;
}

/// Returns the tier's statements about bits.
auto told(const engine::TierVerdict& tier) {
  const engine::Fault& first = tier.faults.at(0);
  return std::tuple(to_text(tier.outcome), tier.checked, tier.mismatches, tier.worst,
                    tier.reordered, tier.faults.size(), first.layer, first.op, first.value,
                    first.rank, first.token, first.feature, first.mismatches);
}

TEST_CASE("any number of processes and of threads tells the same bits") {
  const TempFolder folder;
  const ShardSet shards(split_copy("prototype", "pp=3,tp=2", folder));
  shards.change(kUp, 5, [](ShardRows rows) {
    rows.add_to_bits(3, 7, 1);
    return rows;
  });
  const Compared model(model_folder("prototype"), shards.folder());
  const engine::TierVerdict alone = ordered_verdict(model, 1, 1, "ordered f32");
  CHECK(alone.outcome == engine::Outcome::kDiffers);
  REQUIRE(alone.faults.size() == 1);
  CHECK(alone.faults.front().value == "up");
  CHECK(alone.faults.front().rank == 5);
  for (const auto& [processes, threads] : {std::pair(1, 3), {2, 1}, {3, 2}, {6, 1}}) {
    CAPTURE(processes);
    CAPTURE(threads);
    const auto shared = ordered_verdict(model, processes, threads, "ordered f32");
    REQUIRE(shared.faults.size() == 1);
    CHECK(told(shared) == told(alone));
  }
}

/// Row 41: each device has its features of a feed-forward layer in another order.
TEST_CASE("shards that sum in another order pass, and where their bits differ is told") {
  const TempFolder folder;
  const ShardSet shards(split_copy("prototype", "tp=4", folder));
  const auto order = exchanged(32, 3, 17, 5);
  const std::string mlp = "model.layers.0.mlp.";
  for (const std::string part : {"gate_proj", "up_proj"}) {
    shards.change_all(mlp + part + ".weight",
                      [&](const ShardRows& rows) { return rows.rows_in(order); });
  }
  shards.change_all(mlp + "down_proj.weight",
                    [&](const ShardRows& rows) { return rows.columns_in(order); });
  const api::ValidateReport report = ordered_report("prototype", shards.folder());
  CHECK(report.passes());
  CHECK(report.faults.empty());
  const api::ValidateTier& f32 = report.tiers.at(2);
  CHECK(f32.kind == engine::TierKind::kOrderedF32);
  CHECK(f32.outcome == engine::Outcome::kDiffers);
  CHECK(f32.mismatches > 0);
  constexpr double kRoundings = 1e-5;
  CHECK(f32.worst < kRoundings);
  REQUIRE(f32.first.has_value());
  CHECK(f32.first->layer == "dense 0");
  CHECK(f32.first->value == "gate");
  CHECK(f32.first->rank == 0);
}

/// Row 42: a sum of two f32 numbers does not depend on their order.
TEST_CASE("bits that differ inside a layer alone are no proof, and no difference") {
  const TempFolder folder;
  const ShardSet shards(split_copy("prototype", "tp=4", folder));
  for (const std::string part : {"gate", "up", "down"}) {
    shards.exchange("model.layers.0.mlp." + part + "_proj.weight", 0, 1);
  }
  const api::ValidateReport report = ordered_report("prototype", shards.folder());
  for (const size_t tier : {2U, 3U}) {
    CHECK(report.tiers.at(tier).outcome == engine::Outcome::kPass);
    CHECK(report.tiers.at(tier).reordered > 0);
    CHECK_FALSE(report.tiers.at(tier).is_proof());
  }
}

/// Writes a checkpoint with these tensors and the config of another.
std::string rewritten(const TempFolder& folder, const std::string& model,
                      const std::function<void(Tensors&)>& edit) {
  const std::string path = folder / "rewritten";
  Tensors tensors = read_tensors(model_folder(model), "model");
  edit(tensors);
  write_checkpoint(path, tensors);
  std::filesystem::copy_file(model_folder(model) + "/config.json", path + "/config.json");
  return path;
}

api::ValidateReport ordered_against(const std::string& parts, const std::string& reference) {
  api::ValidateOptions options;
  options.sources = {parts};
  options.reference = reference;
  options.quick = true;
  options.ordered = true;
  return api::validate(options);
}

TEST_CASE("a head that is stored with the embedding on one side alone has every bit") {
  const TempFolder folder;
  const std::string once = rewritten(folder, "tied prototype",
                                     [](Tensors& tensors) { tensors.erase("lm_head.weight"); });
  CHECK(unproved_in(ordered_against(split_copy("tied prototype", "tp=4", folder), once)) == "");
  const TempFolder other;
  api::SplitOptions split;
  split.source = once;
  split.mapping.mesh = mesh::parse_mesh("tp=4");
  split.write.output = other / "parts";
  api::split(split);
  CHECK(unproved_in(ordered_against(split.write.output, model_folder("tied prototype"))) == "");
}

/// Uses powers of two as F8_E4M3 values and F32 scales, so that products are exact in bf16.
void check_scales_of_one_side(const std::string& model) {
  const TempFolder folder;
  const std::string parts = split_copy(model, "tp=2", folder);
  const std::string plain = rewritten(folder, model, [](Tensors& tensors) {
    std::set<std::string> all;
    for (auto& [name, tensor] : tensors) {
      for (const std::string& scale_name : model::scale_names(name)) {
        const auto scales = tensors.find(scale_name);
        if (scales == tensors.end()) continue;
        tensor = dequantised(tensor, scales->second);
        all.insert(scale_name);
      }
    }
    std::erase_if(tensors, [&all](const auto& entry) { return all.contains(entry.first); });
  });
  const api::ValidateReport report = ordered_against(parts, plain);
  CHECK(report.tiers.at(1).outcome == engine::Outcome::kPass);
  CHECK(report.tiers.at(2).outcome == engine::Outcome::kDiffers);
  constexpr double kRoundings = 1e-5;
  CHECK(report.tiers.at(2).worst < kRoundings);
  const TempFolder other;
  api::SplitOptions split;
  split.source = plain;
  split.mapping.mesh = mesh::parse_mesh("tp=2");
  split.write.output = other / "parts";
  api::split(split);
  const api::ValidateReport turned = ordered_against(split.write.output, model_folder(model));
  CHECK(turned.tiers.at(1).outcome == engine::Outcome::kPass);
  CHECK(turned.tiers.at(2).worst < kRoundings);
}

TEST_CASE("scales that one side alone has are told as other bits at most, and are no error") {
  check_scales_of_one_side("fp8");
  check_scales_of_one_side("fp8 with scales of their own name");
}

TEST_CASE(
    "packed shards are held bit for bit against the packed model, and against plain numbers") {
  for (const std::string format : {"gptq", "awq", "pack_quantized", "mxfp4"}) {
    CAPTURE(format);
    const std::string model = golden::packed_model(format);
    const TempFolder folder;
    api::SplitOptions split;
    split.source = model;
    split.mapping.mesh = mesh::parse_mesh("tp=2");
    split.write.output = folder / "parts";
    api::split(split);
    CHECK(unproved_in(ordered_against(split.write.output, model)) == "");
    const auto report = ordered_against(split.write.output, model + "/plain");
    CHECK(report.tiers.at(1).outcome == engine::Outcome::kPass);
    CHECK(report.tiers.at(2).kind == engine::TierKind::kOrderedF32);
    constexpr double kRoundings = 1e-5;
    CHECK(report.tiers.at(2).worst < kRoundings);
  }
}

TEST_CASE("every byte of the whole model is read once, as without the order-matched runs") {
  const TempFolder folder;
  api::ValidateOptions options;
  options.sources = {split_copy("prototype", "dp=2,tp=4", folder)};
  options.reference = model_folder("prototype");
  const i64 plain = api::validate(options).bytes_read;
  options.ordered = true;
  CHECK(api::validate(options).bytes_read == plain);
}

TEST_CASE("shards without a reference are held against themselves merged") {
  const TempFolder folder;
  api::ValidateOptions options;
  options.sources = {split_copy("prototype", "ep=2,tp=2", folder)};
  options.ordered = true;
  const api::ValidateReport report = api::validate(options);
  CHECK(report.passes());
  CHECK(unproved_in(report) == "");
}

}  // namespace
}  // namespace shardtool::test
