// Shares of the layers find what one run of all layers finds, for every family: they begin with
// random numbers in place of what the layers before them make.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <optional>

#include "lib/api/transform.h"
#include "lib/base/error.h"
#include "tests/validate/mutations/mutations.h"
#include "tests/validate/quantised_model.h"

namespace shardtool::test {
namespace {

constexpr int kShares = 3;

api::ValidateReport joined(api::ValidateOptions options, const std::string& verdicts) {
  options.verdicts = verdicts;
  for (int number = 0; number < kShares; ++number) {
    options.share = api::Share{number, kShares};
    api::validate(options);
  }
  return api::joined_verdict(verdicts);
}

/// Describes what differs from a run of all layers, or is wrong, in a model that is split
/// correctly.
std::string difference(const api::ValidateReport& joined, const api::ValidateReport& alone) {
  std::string text;
  if (!joined.passes()) text += fmt::format(" {}", to_text(joined.outcome));
  if (joined.digest != alone.digest) text += " digest";
  if (joined.coverage != alone.coverage) text += " coverage";
  if (joined.bytes && alone.bytes && joined.bytes->parts != alone.bytes->parts) text += " parts";
  if (joined.tiers.size() != alone.tiers.size()) return text + " tiers";
  for (size_t i = 0; i < joined.tiers.size(); ++i) {
    if (joined.tiers[i].checked != alone.tiers[i].checked) {
      text += fmt::format(" {} of {}", joined.tiers[i].checked, to_text(joined.tiers[i].kind));
    }
  }
  for (const engine::Fault& fault : joined.faults) text += " " + fault.layer + " " + fault.value;
  return text;
}

void check_shares(const api::ValidateOptions& options, const TempFolder& folder) {
  const api::ValidateReport alone = api::validate(options);
  CHECK(alone.passes());
  CHECK(difference(joined(options, folder / "verdicts"), alone) == "");
}

TEST_CASE("shares of the layers of every family join to the verdict of one run") {
  for (const std::string& model : every_model()) {
    CAPTURE(model);
    const TempFolder folder;
    api::ValidateOptions options;
    options.sources = {split_copy(model, "tp=2", folder)};
    options.reference = model_folder(model);
    options.resources.threads = 1;
    options.ordered = true;
    options.native = true;
    check_shares(options, folder);
  }
}

/// Splits a random model of this form; nullopt if split refuses it.
std::optional<api::ValidateOptions> quantised(const std::string& form, Random& random,
                                              const TempFolder& folder) {
  const QuantisedModel model = quantised_model(form, 2, random);
  write_checkpoint(folder / "whole", model.tensors);
  folder.write("whole/config.json", model.config);
  api::SplitOptions split;
  split.source = folder / "whole";
  split.mapping.mesh = mesh::parse_mesh("tp=2");
  split.mapping.settings = {
      {"straddle", one_of<std::string>(random, {"uneven-aligned", "pad", "refine"})}};
  split.write.output = folder / "parts";
  try {
    api::split(split);
  } catch (const Error&) {
    return std::nullopt;
  }
  api::ValidateOptions options;
  options.sources = {split.write.output};
  options.reference = split.source;
  options.resources.threads = 1;
  return options;
}

TEST_CASE("shares of quantised models join to the verdict of one run") {
  constexpr int kTries = 20;
  Random random(5);
  for (const std::string& form : quantised_forms()) {
    CAPTURE(form);
    bool is_proved = false;
    for (int i = 0; i < kTries && !is_proved; ++i) {
      const TempFolder folder;
      auto options = quantised(form, random, folder);
      if (!options) continue;
      is_proved = true;
      check_shares(*options, folder);
      options->reference.clear();
      const api::ValidateReport alone = api::validate(*options);
      CHECK(difference(joined(*options, folder / "unproved"), alone) == "");
    }
    CHECK(is_proved);
  }
}

}  // namespace
}  // namespace shardtool::test
