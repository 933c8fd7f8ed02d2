// One changed bit in a tensor on any rank fails the field run, and the diagnosis names the element.
// Of each kind of tensor (names that differ only in the numbers of layer and expert) one is drawn.
// All weights of all families affect the run, except for one kind; for that the report names the
// different bytes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

#include "lib/mapping/document/name_form.h"
#include "tests/validate/mutations/mutations.h"

// Splits the many families into four test cases.
struct First {
  static constexpr size_t kQuarter = 0;
};
struct Second {
  static constexpr size_t kQuarter = 1;
};
struct Third {
  static constexpr size_t kQuarter = 2;
};
struct Fourth {
  static constexpr size_t kQuarter = 3;
};

TYPE_TO_STRING(First);
TYPE_TO_STRING(Second);
TYPE_TO_STRING(Third);
TYPE_TO_STRING(Fourth);

namespace shardtool::test {
namespace {

struct Flip {
  std::string tensor;
  i64 rank = 0;
  i64 row = 0;
  i64 column = 0;
};

i64 below(i64 n, std::mt19937& random) {
  return std::uniform_int_distribution<i64>(0, n - 1)(random);
}

/// Draws one tensor of each kind.
std::vector<std::string> one_of_each_kind(const ShardSet& shards, std::mt19937& random) {
  std::map<std::string, std::vector<std::string>> kinds;
  for (const std::string& tensor : shards.tensors())
    kinds[mapping::name_form(tensor)].push_back(tensor);
  std::vector<std::string> drawn;
  for (const auto& [form, tensors] : kinds) {
    drawn.push_back(tensors[static_cast<size_t>(below(std::ssize(tensors), random))]);
  }
  return drawn;
}

Flip random_flip(const ShardSet& shards, const std::string& tensor, std::mt19937& random) {
  const auto ranks = shards.ranks_of(tensor);
  Flip flip{tensor, ranks[static_cast<size_t>(below(std::ssize(ranks), random))], 0, 0};
  shards.change(tensor, flip.rank, [&](ShardRows rows) {
    flip.row = below(rows.rows, random);
    flip.column = below(rows.columns, random);
    const i64 bit = below(8 * rows.element(), random);
    rows.at(flip.row, flip.column)[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    return rows;
  });
  return flip;
}

/// "rank 2 element [5, 7] is": the global position in the form of the diagnosis. With one column it
/// is the row, for a single number 0.
std::string words_for(const ShardSet& shards, const Flip& flip) {
  const index::Region region = shards.region(flip.tensor, flip.rank);
  const Shape shape = index::local_shape(region);
  i64 at = flip.row * (region.size() <= 1 ? 1 : shape.back()) + flip.column;
  std::vector<i64> local(region.size());
  for (size_t d = region.size(); d > 0; --d) {
    local[d - 1] = at % shape[d - 1];
    at /= shape[d - 1];
  }
  std::string place = region.empty() ? "0" : "";
  // Axes after a matrix of a stack, or after a row, are columns.
  const size_t columns = std::min(region.size(), region.size() >= 3 ? size_t{2} : size_t{1});
  const bool has_one_column =
      std::all_of(region.begin() + static_cast<std::ptrdiff_t>(columns), region.end(),
                  [](const index::AxisMap& axis) { return axis.global_size() == 1; });
  for (size_t d = 0; d < (has_one_column ? columns : region.size()); ++d) {
    place += fmt::format("{}{}", d == 0 ? "" : ", ", region[d](local[d]).value_or(-1));
  }
  return fmt::format("{}: rank {} element [{}] is ", flip.tensor, flip.rank, place);
}

/// Returns true for a norm over all heads that every device has whole. A device uses only the part
/// of its own heads, so other bits do not change its results.
bool is_partly_used(const std::string& model, const std::string& tensor) {
  const std::string of_tower = model == "internvl_qwen3" ? ".attention" : "";
  const bool is_over_heads = model.starts_with("olmo") || model == "minimax_m2" ||
                             model == "flex_olmo" || !of_tower.empty();
  return is_over_heads && (tensor.ends_with(of_tower + ".q_norm.weight") ||
                           tensor.ends_with(of_tower + ".k_norm.weight"));
}

/// Returns true if the report lists the changed part among different bytes, even if the verdict is
/// a pass.
bool tells_of_bytes(const api::ValidateReport& report, const Flip& flip) {
  if (!report.bytes) return false;
  const auto& parts = report.bytes->different;
  return std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
    return part.tensor == flip.tensor && part.rank == flip.rank;
  });
}

void check_every_kind(const std::string& model, const std::string& mesh, std::mt19937& random) {
  CAPTURE(model);
  CAPTURE(mesh);
  const TempFolder folder;
  const ShardSet shards(split_copy(model, mesh, folder));
  api::ValidateOptions options;
  options.sources = {shards.folder()};
  options.reference = model_folder(model);
  options.quick = true;
  options.resources.threads = 1;
  REQUIRE(api::validate(options).passes());
  for (const std::string& tensor : one_of_each_kind(shards, random)) {
    std::vector<ShardRows> before;
    for (const i64 rank : shards.ranks_of(tensor)) before.push_back(shards.read(tensor, rank));
    const Flip flip = random_flip(shards, tensor, random);
    const api::ValidateReport report = api::validate(options);
    CAPTURE(words_for(shards, flip));
    CHECK(tells_of_bytes(report, flip));
    if (!is_partly_used(model, tensor)) CHECK(report.outcome == engine::Outcome::kFail);
    if (!report.faults.empty()) {
      const engine::Fault& fault = report.faults.front();
      CAPTURE(fault.diagnosis);
      CHECK(fault.diagnosis.find(words_for(shards, flip)) == 0);
      CHECK(fault.tensor == tensor);
      CHECK(fault.rank == flip.rank);
    }
    for (size_t i = 0; i < before.size(); ++i) {
      shards.write(tensor, shards.ranks_of(tensor)[i], before[i]);
    }
  }
}

TEST_CASE_TEMPLATE(
    "one flipped bit of any kind of tensor of any family is caught and its element named", Part,
    First, Second, Third, Fourth) {
  std::mt19937 random(17 + Part::kQuarter);
  const std::vector<std::string>& models = every_model();
  for (size_t i = Part::kQuarter; i < models.size(); i += 4) {
    check_every_kind(models[i], "tp=2", random);
  }
}

TEST_CASE("one flipped bit of a tensor on experts and stages is caught and its element named") {
  std::mt19937 random(17);
  check_every_kind("prototype", "dp=2,ep=2,tp=2", random);
  check_every_kind("prototype", "pp=3,tp=4", random);
}

}  // namespace
}  // namespace shardtool::test
