#include "lib/mapping/resolve/read_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lib/base/checked.h"
#include "lib/base/error.h"
#include "lib/index/interleave.h"

namespace shardtool::mapping {
namespace {

using index::AxisMap;
using index::Piece;

/// Value of a size, which knows config.json only.
i64 value_of(const SizeExpression& size, const ReadRule& rule, const ModelConfig* config) {
  return evaluate(size, {config, [&rule](const std::string& axis) -> i64 {
                           throw Error(
                               ErrorCode::kSizeExpression,
                               fmt::format("a rule of \"read\" does not know axes.{}", axis))
                               .at(rule.place)
                               .help("write the size with values of config.json");
                         }});
}

/// Name of a part: stacked numbers are those of the index, other wildcards those of the name.
std::string fill(const Glob& part, const ReadRules::Match& match, const std::vector<i64>& index) {
  const std::vector<std::string>& stacked = match.rule->stacked;
  std::vector<std::string> texts;
  size_t next = 0;
  for (const GlobToken& token : part.wildcards()) {
    const auto number = std::ranges::find(stacked, token.text);
    const bool is_stacked = token.kind == GlobToken::Kind::kNumber && number != stacked.end();
    texts.push_back(is_stacked
                        ? std::to_string(index[static_cast<size_t>(number - stacked.begin())])
                        : match.wildcards[next++]);
  }
  return part.fill(texts);
}

std::vector<i64> shares_of(const ReadRule& rule, const ModelConfig* config) {
  if (rule.shares.empty()) return std::vector<i64>(rule.of.size(), 1);
  std::vector<i64> shares;
  for (const SizeExpression& share : rule.shares) shares.push_back(value_of(share, rule, config));
  return shares;
}

Error uneven_parts(const ReadRule& rule, i64 extent, const std::string& by) {
  return Error(ErrorCode::kShapeMismatch,
               fmt::format("'{}' does not divide into its parts", rule.name.text()))
      .at(rule.place)
      .note("found", fmt::format("an axis of {}", extent))
      .note("expected", "a multiple of " + by)
      .help("check that config.json is that of the checkpoint");
}

/// Limits the runs of neighbouring indices: an axis of a tensor without elements may have any size.
void require_few_runs(const ReadRule& rule, i64 runs) {
  constexpr i64 kMostRuns = 1 << 24;
  if (runs <= kMostRuns) return;
  throw Error(ErrorCode::kLimit,
              fmt::format("'{}' would be read in too many runs of indices", rule.name.text()))
      .at(rule.place)
      .note("found", fmt::format("{}", runs))
      .note("expected", fmt::format("at most {}", kMostRuns));
}

i64 sum_of(const std::vector<i64>& shares, const ReadRule& rule) {
  std::optional<i64> sum = 0;
  for (const i64 share : shares) sum = sum ? checked_add(*sum, share) : sum;
  if (sum) return *sum;
  throw Error(ErrorCode::kSizeExpression,
              fmt::format("the shares of '{}' add up to more than 2^63", rule.name.text()))
      .at(rule.place);
}

/// Indices of a part: in each group, `size` indices from `begin` on.
AxisMap part_of_groups(i64 extent, i64 groups, i64 begin, i64 size) {
  std::vector<Piece> pieces;
  for (i64 group = 0; group < groups; ++group) {
    pieces.push_back({group * (extent / groups) + begin, group * size, size});
  }
  return AxisMap(extent, groups * size, std::move(pieces));
}

/// Indices in the order of transformers: the first half of every head before the second one.
AxisMap in_halves(const ReadRule& rule, i64 extent, const ModelConfig* config) {
  if (!rule.interleaved) return AxisMap::identity(extent);
  const i64 heads = value_of(*rule.interleaved, rule, config);
  if (extent % heads != 0 || extent / heads % 2 != 0) {
    throw uneven_parts(rule, extent, fmt::format("twice {} heads", heads));
  }
  if (extent == 0) return AxisMap::identity(extent);
  require_few_runs(rule, extent);
  return index::interleaving(extent, extent / heads);
}

/// All indices but the padding.
AxisMap without_padding(const ReadRule& rule, i64 extent, const ModelConfig* config) {
  if (!rule.size) return AxisMap::identity(extent);
  const i64 kept = value_of(*rule.size, rule, config);
  if (kept <= extent) return AxisMap(extent, kept, {{0, 0, kept}});
  throw Error(ErrorCode::kShapeMismatch,
              fmt::format("'{}' is smaller than config.json says", rule.name.text()))
      .at(rule.place)
      .note("found", fmt::format("an axis of {}", extent))
      .note("expected", fmt::format("at least {}", kept));
}

}  // namespace

bool has_read_rules(const Mapping& mapping) {
  return std::ranges::any_of(mapping.documents(),
                             [](const Document& document) { return !document.read.empty(); });
}

ReadRules::ReadRules(const Mapping& mapping) {
  for (const Document& document : mapping.documents()) {
    for (const ReadRule& rule : document.read) rules_.push_back({&rule, GlobMatcher(rule.name)});
  }
}

std::vector<const ReadRule*> ReadRules::all() const {
  std::vector<const ReadRule*> rules;
  for (const Entry& entry : rules_) rules.push_back(entry.rule);
  return rules;
}

std::optional<ReadRules::Match> ReadRules::find(std::string_view stored, size_t axes) const {
  for (const Entry& entry : rules_) {
    if (axes < entry.rule->stacked.size()) continue;
    auto wildcards = entry.name.match(stored);
    if (wildcards) return Match{entry.rule, *std::move(wildcards)};
  }
  return std::nullopt;
}

std::vector<PartPlace> parts_at(const ReadRules::Match& match,
                                const std::vector<i64>& stacked_index, i64 extent,
                                const ModelConfig* config) {
  const ReadRule& rule = *match.rule;
  if (rule.of.size() == 1) {
    const AxisMap kept = without_padding(rule, extent, config);
    return {{fill(rule.of.front(), match, stacked_index),
             compose(in_halves(rule, kept.global_size(), config), kept)}};
  }
  const std::vector<i64> shares = shares_of(rule, config);
  const i64 groups = rule.groups ? value_of(*rule.groups, rule, config) : 1;
  require_few_runs(rule, groups);
  const i64 all = sum_of(shares, rule);
  if (extent % all != 0) throw uneven_parts(rule, extent, std::to_string(all));
  std::vector<PartPlace> parts;
  i64 begin = 0;
  for (size_t part = 0; part < rule.of.size(); ++part) {
    const i64 whole = extent / all * shares[part];
    if (whole % groups != 0) throw uneven_parts(rule, whole, std::to_string(groups));
    const i64 size = whole / groups;
    parts.push_back(
        {fill(rule.of[part], match, stacked_index), part_of_groups(extent, groups, begin, size)});
    begin += size;
  }
  return parts;
}

}  // namespace shardtool::mapping
