#include "lib/layouts/read_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lib/base/error.h"
#include "lib/index/interleave.h"

namespace shardtool::layouts {
namespace {

using index::AxisMap;
using index::Piece;

i64 config_number(const mapping::ModelConfig* config, const std::string& path) {
  const auto value = config == nullptr ? std::nullopt : config->size(path);
  if (value) return *value;
  throw Error(ErrorCode::kConfig, fmt::format("config.json has no number '{}'", path))
      .help("give the model's config.json with --model-config");
}

/// Name of a part: stacked numbers are those of the index, other wildcards those of the name.
std::string fill(const mapping::Glob& part, const ReadRule& rule,
                 const std::vector<std::string>& wildcards, const std::vector<i64>& index) {
  std::vector<std::string> texts;
  size_t next = 0;
  for (const mapping::GlobToken& token : part.wildcards()) {
    const auto stacked = std::ranges::find(rule.stacked, token.text);
    const bool is_stacked =
        token.kind == mapping::GlobToken::Kind::kNumber && stacked != rule.stacked.end();
    texts.push_back(is_stacked
                        ? std::to_string(index[static_cast<size_t>(stacked - rule.stacked.begin())])
                        : wildcards[next++]);
  }
  return part.fill(texts);
}

std::vector<i64> shares_of(const ReadRule& rule, const mapping::ModelConfig* config) {
  if (rule.shares.empty()) return std::vector<i64>(rule.of.size(), 1);
  std::vector<i64> shares;
  for (const std::string& path : rule.shares) shares.push_back(config_number(config, path));
  return shares;
}

Error uneven_rows(const ReadRule& rule, i64 rows, i64 by) {
  return Error(ErrorCode::kShapeMismatch,
               fmt::format("the rows of '{}' do not divide into its parts", rule.name.text()))
      .note("found", fmt::format("{} rows", rows))
      .note("expected", fmt::format("a multiple of {}", by))
      .help("check that config.json is that of the checkpoint");
}

/// Rows of a part: in each group, `size` rows from `begin` on.
AxisMap rows_of_part(i64 rows, i64 groups, i64 begin, i64 size) {
  std::vector<Piece> pieces;
  for (i64 group = 0; group < groups; ++group) {
    pieces.push_back({group * (rows / groups) + begin, group * size, size});
  }
  return AxisMap(rows, groups * size, std::move(pieces));
}

/// Rows in the order of transformers: the first half of every head before the second one.
AxisMap in_halves(const ReadRule& rule, i64 rows, const mapping::ModelConfig* config) {
  if (rule.interleaved.empty()) return AxisMap::identity(rows);
  const i64 heads = config_number(config, rule.interleaved);
  if (heads <= 0 || rows % (2 * heads) != 0) throw uneven_rows(rule, rows, 2 * heads);
  return index::interleaving(rows, rows / heads);
}

/// All rows but the padding.
AxisMap without_padding(const ReadRule& rule, i64 rows, const mapping::ModelConfig* config) {
  if (rule.rows.empty()) return AxisMap::identity(rows);
  const i64 kept = config_number(config, rule.rows);
  if (kept <= rows) return AxisMap(rows, kept, {{0, 0, kept}});
  throw Error(ErrorCode::kShapeMismatch,
              fmt::format("'{}' has fewer rows than config.json says", rule.name.text()))
      .note("found", fmt::format("{} rows", rows))
      .note("expected", fmt::format("at least {}", kept));
}

}  // namespace

ReadRule decode_read_rule(const nlohmann::json& json) {
  ReadRule rule{mapping::Glob(json.at("name").get<std::string>()), {}, {}, {}, "", "", ""};
  for (const std::string part : json.at("of")) rule.of.emplace_back(part);
  rule.stacked = json.value("stacked", rule.stacked);
  rule.shares = json.value("shares", rule.shares);
  rule.groups = json.value("groups", "");
  rule.rows = json.value("rows", "");
  rule.interleaved = json.value("interleaved", "");
  return rule;
}

RankForm decode_rank_form(const nlohmann::json& json) {
  RankForm form;
  for (const auto& cut : json.at("cuts")) {
    form.cuts.push_back({mapping::Glob(cut.at("name").get<std::string>()),
                         cut.at("axis").get<size_t>(), cut.value("halves", false),
                         cut.value("groups", "")});
  }
  json.at("layers").get_to(form.layers);
  json.at("experts").get_to(form.experts);
  json.at("last").get_to(form.last);
  return form;
}

std::vector<PartPlace> parts_at(const ReadRule& rule, const std::vector<std::string>& wildcards,
                                const std::vector<i64>& stacked_index, i64 rows,
                                const mapping::ModelConfig* config) {
  if (rule.of.size() == 1) {
    const AxisMap kept = without_padding(rule, rows, config);
    return {{fill(rule.of.front(), rule, wildcards, stacked_index),
             compose(in_halves(rule, kept.global_size(), config), kept)}};
  }
  const std::vector<i64> shares = shares_of(rule, config);
  const i64 groups = rule.groups.empty() ? 1 : config_number(config, rule.groups);
  const i64 all = std::accumulate(shares.begin(), shares.end(), i64{0});
  if (rows % all != 0) throw uneven_rows(rule, rows, all);
  std::vector<PartPlace> parts;
  i64 begin = 0;
  for (size_t part = 0; part < rule.of.size(); ++part) {
    const i64 part_rows = rows / all * shares[part];
    if (part_rows % groups != 0) throw uneven_rows(rule, part_rows, groups);
    const i64 size = part_rows / groups;
    parts.push_back({fill(rule.of[part], rule, wildcards, stacked_index),
                     rows_of_part(rows, groups, begin, size)});
    begin += size;
  }
  return parts;
}

}  // namespace shardtool::layouts
