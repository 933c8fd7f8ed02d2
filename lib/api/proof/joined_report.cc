#include "lib/api/proof/joined_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace shardtool::api {
namespace {

using engine::Outcome;
using engine::TierKind;

/// Appends what is not there yet.
template <class T>
void unite(std::vector<T>& all, const std::vector<T>& more) {
  for (const T& one : more) {
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  }
}

/// The headers are the same for all shares; other comparisons are of parts.
void add(ValidateTier& sum, const ValidateTier& share) {
  const bool is_same = sum.kind == TierKind::kManifest || sum.kind == TierKind::kHeaders;
  sum.outcome = std::max(sum.outcome, share.outcome);
  sum.checked = is_same ? std::max(sum.checked, share.checked) : sum.checked + share.checked;
  sum.mismatches =
      is_same ? std::max(sum.mismatches, share.mismatches) : sum.mismatches + share.mismatches;
  sum.worst = std::max(sum.worst, share.worst);
  sum.rounding = std::max(sum.rounding, share.rounding);
  sum.reordered += share.reordered;
  if (!sum.first) sum.first = share.first;
}

void add(engine::CollectiveRow& sum, const engine::CollectiveRow& share) {
  sum.predicted_count += share.predicted_count;
  sum.counted += share.counted;
  sum.predicted_elements += share.predicted_elements;
  sum.counted_elements += share.counted_elements;
}

void add(engine::ComparedBytes& sum, const engine::ComparedBytes& share) {
  sum.parts += share.parts;
  sum.differing += share.differing;
  sum.different.insert(sum.different.end(), share.different.begin(), share.different.end());
  sum.tensors.insert(share.tensors.begin(), share.tensors.end());
  std::ranges::sort(sum.different, {},
                    [](const auto& part) { return std::tie(part.tensor, part.rank); });
}

template <class Row, class Key>
void join_rows(std::vector<Row>& rows, const Key& key) {
  std::map<decltype(key(rows.front())), Row> by_key;
  for (Row& row : rows) {
    const auto place = key(row);
    const auto known = by_key.find(place);
    if (known == by_key.end()) {
      by_key.emplace(place, std::move(row));
    } else {
      add(known->second, row);
    }
  }
  rows.clear();
  for (auto& [place, row] : by_key) rows.push_back(std::move(row));
}

std::uint64_t digest_of(const std::string& hex) {
  std::uint64_t digest = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), digest, 16);
  return digest;
}

/// Empty if one of them is: that share could not run.
std::string sum_of_digests(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? "" : fmt::format("{:016x}", digest_of(a) + digest_of(b));
}

/// Sorts findings of bytes behind those of headers, by tensor and rank.
void sort_findings(std::vector<check::Finding>& findings) {
  std::ranges::stable_sort(findings, {}, [](const check::Finding& one) {
    const bool is_of_bytes =
        one.rule == check::CheckRule::kShardHash || one.rule == check::CheckRule::kDigest;
    return is_of_bytes ? std::tuple(true, one.tensor, one.rank)
                       : std::tuple(false, std::string(), i64{0});
  });
}

void intersect(std::vector<std::string>& names, const std::vector<std::string>& others) {
  const std::set<std::string_view> there(others.begin(), others.end());
  std::erase_if(names, [&](const std::string& name) { return !there.contains(name); });
}

}  // namespace

Outcome outcome_of(const ValidateReport& report, double require_coverage) {
  const auto is = [](Outcome outcome) {
    return [outcome](const ValidateTier& tier) {
      return tier.outcome == outcome && !(outcome == Outcome::kUndecided && is_ordered(tier.kind));
    };
  };
  const bool moves_otherwise =
      std::ranges::any_of(report.collectives, [](const auto& row) { return !row.agrees(); });
  const bool fails = std::ranges::any_of(report.tiers, is(Outcome::kFail));
  if (fails || moves_otherwise || report.coverage < require_coverage) return Outcome::kFail;
  // Weights that are no numbers prove no equality, whatever their bits.
  const bool is_open =
      !report.odd_weights.empty() || std::ranges::any_of(report.tiers, is(Outcome::kUndecided));
  return is_open ? Outcome::kUndecided : Outcome::kPass;
}

void add_share(ValidateReport& all, const ValidateReport& share) {
  all.tiers.insert(all.tiers.end(), share.tiers.begin(), share.tiers.end());
  join_rows(all.tiers, [](const ValidateTier& tier) { return tier.kind; });
  all.collectives.insert(all.collectives.end(), share.collectives.begin(), share.collectives.end());
  join_rows(all.collectives, [](const engine::CollectiveRow& row) {
    return std::tuple(row.tier, row.axis, row.move);
  });
  unite(all.findings, share.findings);
  sort_findings(all.findings);
  all.faults.insert(all.faults.end(), share.faults.begin(), share.faults.end());
  std::ranges::stable_sort(all.faults, {}, [](const engine::Fault& fault) {
    return std::pair(fault.tier, fault.layer_index);
  });
  unite(all.odd_weights, share.odd_weights);
  if (!all.bytes) {
    all.bytes = share.bytes;
  } else if (share.bytes) {
    add(*all.bytes, *share.bytes);
  }
  unite(all.accelerators, share.accelerators);
  unite(all.libraries, share.libraries);
  unite(all.not_proved, share.not_proved);
  unite(all.notes, share.notes);
  intersect(all.untested, share.untested);
  all.digest = sum_of_digests(all.digest, share.digest);
  all.native += share.native;
  all.reordered += share.reordered;
  all.undecidable_tokens += share.undecidable_tokens;
  all.bytes_read += share.bytes_read;
  all.seconds = std::max(all.seconds, share.seconds);
}

double coverage_of(const ValidateReport& report) {
  const i64 tested = report.tensors - std::ssize(report.untested);
  return report.tensors == 0
             ? 100
             : 100.0 * static_cast<double>(tested) / static_cast<double>(report.tensors);
}

void judge_shares(ValidateReport& all, double require_coverage) {
  all.coverage = coverage_of(all);
  all.outcome = outcome_of(all, require_coverage);
}

}  // namespace shardtool::api
