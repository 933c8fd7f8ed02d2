// Every quantised model that `split` accepts merges to the same bytes, computes the same as the
// whole model, and has no findings.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/api/check.h"
#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/validate/quantised_model.h"
#include "tests/validate/shard_set.h"

namespace shardtool::test {
namespace {

const std::vector<std::string> kPolicies{"error", "uneven-aligned", "pad", "replicate-scale",
                                         "refine"};

/// A model, a mesh, and a mapping that extends its family's.
struct QuantisedCase {
  QuantisedModel model;
  mesh::Mesh mesh;
  std::vector<std::pair<std::string, std::string>> settings;
  std::string words;        ///< for messages
  std::string layout = {};  ///< of an engine; empty: that of the mapping
};

/// Makes the model of a form for tp.
using MakeModel = QuantisedModel (*)(const std::string& form, i64 tp, Random& random);

QuantisedCase any_case(const std::string& form, const std::string& policy, Random& random,
                       MakeModel make_model = quantised_model) {
  const i64 tp = between(random, 2, 4);
  const std::string mesh =
      one_of<std::string>(random, {"tp={}", "tp={}", "dp=2,tp={}", "ep=2,tp={}"});
  QuantisedCase made;
  made.model = make_model(form, tp, random);
  made.words = fmt::format(fmt::runtime(mesh), tp);
  made.mesh = mesh::parse_mesh(made.words);
  made.settings = {{"straddle", policy}};
  const std::string uneven = one_of<std::string>(random, {"", "", "balanced", "chunk", "pad"});
  if (!uneven.empty()) made.settings.push_back({"axes.mlp.uneven", uneven});
  if (between(random, 0, 3) == 0) made.settings.push_back({"axes.kv_heads.small", "gather"});
  for (const auto& [path, value] : made.settings) made.words += fmt::format(" {}={}", path, value);
  return made;
}

class QuantisedShards {
 public:
  explicit QuantisedShards(const QuantisedCase& made) : made_(made) {
    write_checkpoint(whole(), made.model.tensors);
    folder_.write("whole/config.json", made.model.config);
  }

  /// Returns false if split refuses the case.
  bool split() const {
    api::SplitOptions options;
    options.source = whole();
    options.mapping.mesh = made_.mesh;
    options.mapping.settings = made_.settings;
    options.write.output = parts();
    options.write.resources.threads = 1;
    try {
      if (!made_.layout.empty()) options.write.layout = made_.layout;
      api::split(options);
      return true;
    } catch (const Error& refusal) {
      INFO(refusal.message());
      CHECK(refusal.code() != ErrorCode::kInternal);
      return false;
    }
  }

  void check_merge() const {
    api::MergeOptions options;
    options.sources = {parts()};
    options.write.output = folder_ / "merged";
    options.write.resources.threads = 1;
    api::merge(options);
    const Tensors merged = read_tensors(options.write.output, "model");
    REQUIRE(merged.size() == made_.model.tensors.size());
    for (const auto& [name, tensor] : made_.model.tensors) {
      CAPTURE(name);
      CHECK(merged.at(name).spec.shape == tensor.spec.shape);
      CHECK(merged.at(name).bytes == tensor.bytes);
    }
  }

  void check_validate() const {
    const api::ValidateReport report = validated(false);
    CAPTURE(report.faults.empty() ? "" : report.faults.front().diagnosis);
    CHECK(report.passes());
    CHECK(report.tiers.at(1).outcome == engine::Outcome::kPass);
    CHECK(report.tiers.at(2).outcome == engine::Outcome::kPass);
  }

  api::ValidateReport validated(bool ordered) const {
    api::ValidateOptions options;
    options.sources = {parts()};
    options.reference = whole();
    options.resources.threads = 1;
    options.ordered = ordered;
    return api::validate(options);
  }
  /// Compares the shards with the dequantised whole model.
  api::ValidateReport validated_by_plain_numbers() const {
    api::MergeOptions plain;
    plain.sources = {whole()};
    plain.write.output = folder_ / "plain";
    plain.write.dequantize = true;
    plain.write.dtype = Dtype::kF32;
    api::merge(plain);
    api::ValidateOptions options;
    options.sources = {parts()};
    options.reference = plain.write.output;
    options.resources.threads = 1;
    options.compares_values = true;
    return api::validate(options);
  }
  /// Compares shards whose manifest is gone with the whole model.
  api::ValidateReport validated_without_manifest() const {
    std::filesystem::remove(parts() + "/manifest.json");
    api::ValidateOptions options;
    options.sources = {parts()};
    options.reference = whole();
    options.mapping.mesh = made_.mesh;
    options.resources.threads = 1;
    return api::validate(options);
  }
  std::string parts() const { return folder_ / "parts"; }

  void check_has_no_findings() const {
    api::CheckOptions options;
    options.sources = {parts()};
    options.data.emplace();
    for (const check::Finding& finding : api::check(options).findings) {
      if (finding.severity < check::Severity::kWarning) continue;
      FAIL_CHECK(check::rule_info(finding.rule).id, " ", finding.tensor, ": ", finding.message);
    }
  }

 private:
  std::string whole() const { return folder_ / "whole"; }

  const QuantisedCase& made_;
  TempFolder folder_;
};

/// Returns true if split accepts the case; then checks everything else.
bool holds(const QuantisedCase& made) {
  const QuantisedShards shards(made);
  if (!shards.split()) return false;
  try {
    shards.check_merge();
    shards.check_validate();
    shards.check_has_no_findings();
  } catch (const Error& error) {
    FAIL_CHECK(error.id(), " ", error.tensor_name(), ": ", error.message());
  }
  return true;
}

TEST_CASE("quantised shards that split accepts merge, validate and have no findings") {
  constexpr std::uint32_t kRounds = 5;
  std::uint32_t seed = 0;
  std::map<std::string, int> accepted;  // by form and by policy
  for (const std::string& form : quantised_forms()) {
    for (const std::string& policy : kPolicies) {
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        Random random(seed++);
        const QuantisedCase made = any_case(form, policy, random);
        CAPTURE(form);
        CAPTURE(seed);
        CAPTURE(made.words);
        CAPTURE(made.model.config);
        const int count = holds(made) ? 1 : 0;
        accepted[form] += count;
        accepted[policy] += count;
      }
    }
  }
  // Each form and policy must be accepted at least once, or the test would prove no law.
  for (const auto& [form_or_policy, count] : accepted) {
    CAPTURE(form_or_policy);
    CHECK(count >= 4);
  }
}

TEST_CASE("quantised shards whose last words have codes beyond the inputs are like others") {
  constexpr std::uint32_t kRounds = 6;
  std::uint32_t seed = 0;
  for (const std::string form : {"pack-quantized", "pack-quantized symmetric",
                                 "pack-quantized 8 bits", "pack-quantized act order"}) {
    int accepted = 0;
    for (const std::string policy : {"error", "uneven-aligned", "pad"}) {
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        Random random(seed++);
        const QuantisedCase made = any_case(form, policy, random, padded_model);
        CAPTURE(form);
        CAPTURE(seed);
        CAPTURE(made.words);
        CAPTURE(made.model.config);
        accepted += holds(made) ? 1 : 0;
      }
    }
    CHECK(accepted >= 2);
  }
}

TEST_CASE("vLLM's shards of experts, of which only the first device has the last bias") {
  int accepted = 0;
  for (std::uint32_t seed = 0; seed < 40 && accepted < 3; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const QuantisedCase made{
        quantised_model("mxfp4", 2, random), mesh::parse_mesh("tp=2"), {}, "", "vllm"};
    const QuantisedShards shards(made);
    if (!shards.split()) continue;
    ++accepted;
    shards.check_validate();
  }
  CHECK(accepted == 3);
}

/// Returns a case of this policy that split accepts.
QuantisedCase accepted_case(const std::string& form, const std::string& policy,
                            std::uint32_t seed) {
  for (;; ++seed) {
    Random random(seed);
    QuantisedCase made = any_case(form, policy, random);
    if (QuantisedShards(made).split()) return made;
  }
}

const std::vector<std::string> kScaledForms{"fp8 block", "float-quantized group",
                                            "int-quantized group", "awq", "nvfp4"};

TEST_CASE("shards with shared and refined scales compute the bits of the whole model cut alike") {
  for (const std::string& form : kScaledForms) {
    for (const std::string policy : {"replicate-scale", "refine"}) {
      const QuantisedCase made = accepted_case(form, policy, 1);
      CAPTURE(form);
      CAPTURE(made.words);
      const QuantisedShards shards(made);
      REQUIRE(shards.split());
      for (const api::ValidateTier& tier : shards.validated(true).tiers) {
        CAPTURE(to_text(tier.kind));
        CHECK(tier.outcome == engine::Outcome::kPass);
      }
    }
  }
}

TEST_CASE("weights that are gathered have every copy of their refined scales") {
  int accepted = 0;
  for (std::uint32_t seed = 0; seed < 60 && accepted < 3; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    QuantisedCase made = any_case("fp8 block", "refine", random);
    made.mesh = mesh::Mesh({{"fsdp", 2}, {"tp", made.mesh.axes().back().size}});
    made.settings.emplace_back("axes.embed", "fsdp");
    const QuantisedShards shards(made);
    if (!shards.split()) continue;
    ++accepted;
    for (const api::ValidateTier& tier : shards.validated(true).tiers) {
      CAPTURE(to_text(tier.kind));
      CHECK(tier.outcome == engine::Outcome::kPass);
    }
  }
  CHECK(accepted == 3);
}

/// Returns the local rows that are no padding, which engines drop.
std::vector<i64> known_rows(const index::AxisMap& rows) {
  std::vector<i64> known;
  for (const index::Piece& piece : rows.pieces()) {
    for (i64 row = piece.local; row < piece.local_end(); ++row) known.push_back(row);
  }
  return known;
}

TEST_CASE("a changed scale or zero point fails, also where it is one of several copies") {
  for (const std::string& form : kScaledForms) {
    for (const std::string policy : {"replicate-scale", "refine"}) {
      const QuantisedCase made = accepted_case(form, policy, 1);
      CAPTURE(form);
      CAPTURE(made.words);
      const QuantisedShards shards(made);
      REQUIRE(shards.split());
      const ShardSet files(shards.parts());
      Random random(1);
      for (const std::string& name : files.tensors()) {
        const bool is_of_block =
            name.find("scale") != std::string::npos || name.ends_with("_zero_point");
        if (!is_of_block || name.ends_with("global_scale")) continue;
        CAPTURE(name);
        const i64 rank = one_of(random, files.ranks_of(name));
        const ShardRows before = files.read(name, rank);
        ShardRows rows = before;
        const index::Region region = files.region(name, rank);
        rows.add_to_bits(one_of(random, known_rows(region[0])),
                         between(random, 0, rows.columns - 1), 1);
        files.write(name, rank, rows);
        const api::ValidateReport report = shards.validated(false);
        files.write(name, rank, before);
        CHECK(report.tiers.at(1).outcome == engine::Outcome::kFail);
        REQUIRE(!report.faults.empty());
        CAPTURE(report.faults.front().diagnosis);
        CHECK(report.faults.front().tensor == name);
        CHECK(report.faults.front().rank == rank);
      }
    }
  }
}

/// Returns the next case of this form on tp=2 that split cuts in equal shards.
QuantisedCase equal_case(const std::string& form, std::uint32_t& seed) {
  constexpr i64 kTp = 2;
  for (;;) {
    Random random(seed++);
    QuantisedCase made{quantised_model(form, kTp, random), mesh::parse_mesh("tp=2"), {}, "tp=2"};
    const auto config = nlohmann::json::parse(made.model.config);
    const bool is_equal = config.at("num_key_value_heads").get<i64>() % kTp == 0;
    if (is_equal && QuantisedShards(made).split()) return made;
  }
}

/// True for tensors of which a rank may have values of its own: its first group is 0, and the
/// recorded shape is that of its shard.
bool may_be_own(const std::string& name) {
  return name.ends_with("g_idx") || name.ends_with("weight_shape");
}

/// Writes the values of the unsharded tensors in place of the ranks' own, as vLLM keeps them.
void store_unsharded_values(const ShardSet& files, const Tensors& whole) {
  for (const std::string& name : files.tensors()) {
    if (!may_be_own(name)) continue;
    const Bytes& all = whole.at(name).bytes;
    for (const i64 rank : files.ranks_of(name)) {
      ShardRows rows = files.read(name, rank);
      const index::AxisMap map = files.region(name, rank).front();
      for (const index::Piece& piece : map.pieces()) {
        const i64 element = rows.element();
        std::copy_n(all.begin() + piece.global * element, piece.size * element,
                    rows.bytes.begin() + piece.local * element);
      }
      files.write(name, rank, rows);
    }
  }
}

TEST_CASE("shards without a manifest may count groups and shapes for themselves, or unsharded") {
  for (const std::string form :
       {"gptq", "gptq v2", "gptq 8 bits", "gptq act order", "awq", "pack-quantized",
        "pack-quantized symmetric", "pack-quantized 8 bits", "pack-quantized act order"}) {
    std::uint32_t seed = 0;
    for (int round = 0; round < 3; ++round) {
      const QuantisedCase made = equal_case(form, seed);
      CAPTURE(form);
      CAPTURE(seed);
      CAPTURE(made.model.config);
      const QuantisedShards shards(made);
      REQUIRE(shards.split());
      const ShardSet files(shards.parts());
      for (const bool is_own : {true, false}) {
        CAPTURE(is_own);
        if (!is_own) store_unsharded_values(files, made.model.tensors);
        const api::ValidateReport report = shards.validated_without_manifest();
        CAPTURE(report.findings.empty() ? "" : report.findings.front().message);
        CHECK(report.passes());
        REQUIRE(report.bytes.has_value());
        CHECK(report.bytes->differing == 0);
      }
    }
  }
}

TEST_CASE("a wrong group number or shape of a shard without a manifest is found on its rank") {
  for (const std::string form : {"gptq", "gptq 8 bits", "pack-quantized"}) {
    std::uint32_t seed = 0;
    const QuantisedCase made = equal_case(form, seed);
    CAPTURE(form);
    CAPTURE(made.model.config);
    const QuantisedShards shards(made);
    REQUIRE(shards.split());
    const ShardSet files(shards.parts());
    for (const bool is_own : {true, false}) {
      CAPTURE(is_own);
      if (!is_own) store_unsharded_values(files, made.model.tensors);
      for (const std::string& name : files.tensors()) {
        if (!may_be_own(name)) continue;
        CAPTURE(name);
        const ShardRows before = files.read(name, 1);
        ShardRows rows = before;
        rows.add_to_bits(rows.rows - 1, 0, 1);
        files.write(name, 1, rows);
        const api::ValidateReport report = shards.validated_without_manifest();
        files.write(name, 1, before);
        CHECK(!report.passes());
        const bool is_named = std::ranges::any_of(report.findings, [&](const auto& finding) {
          return finding.tensor == name && finding.rank == 1;
        });
        CHECK(is_named);
      }
    }
  }
}

TEST_CASE("shards with zero points compute what the dequantised model does") {
  // F32 holds each (q - z) * s: the scales have 11 bits.
  for (const std::string strategy : {"tensor", "channel", "group", "block"}) {
    const QuantisedCase made = accepted_case("int-quantized " + strategy, "error", 1);
    CAPTURE(strategy);
    CAPTURE(made.words);
    const QuantisedShards shards(made);
    REQUIRE(shards.split());
    for (const api::ValidateTier& tier : shards.validated_by_plain_numbers().tiers) {
      CAPTURE(to_text(tier.kind));
      CHECK(tier.outcome == engine::Outcome::kPass);
    }
  }
}

}  // namespace
}  // namespace shardtool::test
