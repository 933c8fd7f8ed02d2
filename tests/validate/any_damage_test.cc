// Random damage to the bytes of shards: the field run fails if a value changed, and the report
// describes it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

constexpr int kDamages = 150;

class Damage {
 public:
  Damage(const ShardSet& shards, std::uint32_t seed) : shards_(shards), random_(seed) {}

  /// Applies one to three kinds of damage: a range is overwritten, moved, reversed, or copied from
  /// another rank.
  void make() {
    const i64 times = below(3) + 1;
    for (i64 i = 0; i < times; ++i) make_one();
  }

 private:
  i64 below(i64 n) { return std::uniform_int_distribution<i64>(0, n - 1)(random_); }
  std::string any_tensor() {
    const auto names = shards_.tensors();
    return names[static_cast<size_t>(below(std::ssize(names)))];
  }

  void make_one() {
    const std::string name = any_tensor();
    const auto ranks = shards_.ranks_of(name);
    const i64 rank = ranks[static_cast<size_t>(below(std::ssize(ranks)))];
    ShardRows rows = shards_.read(name, rank);
    const i64 size = std::ssize(rows.bytes);
    const i64 length = 1 + below(size);
    const i64 from = below(size - length + 1);
    const i64 to = below(size - length + 1);
    const auto at = [&](i64 i) { return rows.bytes.begin() + i; };
    switch (below(4)) {
      case 0:
        std::generate(at(from), at(from + length),
                      [this] { return static_cast<std::uint8_t>(below(256)); });
        break;
      case 1: {
        const Bytes stretch(at(from), at(from + length));
        std::copy(stretch.begin(), stretch.end(), at(to));
        break;
      }
      case 2:
        std::reverse(at(from), at(from + length));
        break;
      default: {
        const i64 other = ranks[static_cast<size_t>(below(std::ssize(ranks)))];
        const ShardRows there = shards_.read(name, other);
        std::copy_n(there.bytes.begin(), std::min(length, std::ssize(there.bytes)), at(0));
      }
    }
    shards_.write(name, rank, rows);
  }

  const ShardSet& shards_;
  std::mt19937 random_;
};

bool same_bytes(const ShardSet& a, const ShardSet& b) {
  for (const std::string& name : a.tensors()) {
    for (const i64 rank : a.ranks_of(name)) {
      if (a.read(name, rank).bytes != b.read(name, rank).bytes) return false;
    }
  }
  return true;
}

TEST_CASE("any damage of bytes fails, with words that name a tensor and a rank") {
  const std::vector<std::string> models{"prototype", "gpt_oss", "deepseek_v3", "fp8"};
  for (std::uint32_t i = 0; i < kDamages; ++i) {
    const std::string& model = models[i % models.size()];
    const TempFolder folder, intact;
    const ShardSet shards(split_copy(model, "tp=2", folder));
    const ShardSet before(split_copy(model, "tp=2", intact));
    Damage(shards, i).make();
    if (same_bytes(before, shards)) continue;
    CAPTURE(i);
    CAPTURE(model);
    api::ValidateOptions options;
    options.sources = {shards.folder()};
    options.reference = model_folder(model);
    options.quick = i % 3 != 0;
    options.resources.threads = 1;
    const api::ValidateReport report = api::validate(options);
    CHECK(report.outcome == engine::Outcome::kFail);
    REQUIRE(!report.faults.empty());
    const engine::Fault& fault = report.faults.front();
    CAPTURE(fault.diagnosis);
    CHECK(!fault.tensor.empty());
    CHECK(fault.diagnosis.find(fault.tensor + ": rank " + std::to_string(fault.rank)) == 0);
  }
}

}  // namespace
}  // namespace shardtool::test
