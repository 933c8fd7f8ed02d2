#include "cli/print/html/tensor_grid.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>
#include <string>
#include <vector>

#include "cli/print/html/device_groups.h"
#include "cli/print/html/held_parts.h"

namespace shardtool::cli {
namespace {

using nlohmann::ordered_json;

const std::vector<std::string> kNames{"q", "k", "v", "z"};

/// The "rules" element of a tensor whose sections each rank has an equal part of.
ordered_json rule_of(const std::vector<i64>& units, i64 ranks) {
  ordered_json sections = ordered_json::array();
  std::vector<ordered_json> slices(static_cast<size_t>(ranks), ordered_json::array());
  i64 begin = 0;
  for (size_t s = 0; s < units.size(); ++s) {
    sections.push_back({{"begin", begin}, {"name", kNames[s]}});
    for (i64 r = 0; r < ranks; ++r)
      slices[static_cast<size_t>(r)].push_back({begin + r * units[s], begin + (r + 1) * units[s]});
    begin += ranks * units[s];
  }
  ordered_json shards = ordered_json::array();
  for (i64 r = 0; r < ranks; ++r) {
    shards.push_back(
        {{"rank", r}, {"bytes", 8}, {"slices", {slices[static_cast<size_t>(r)], {{0, 8}}}}});
  }
  const ordered_json axes = {{{"logical", "heads"}, {"expression", ""}, {"sections", sections}},
                             {{"logical", "embed"}, {"expression", ""}}};
  return {{"tensors", 1},
          {"bytes", 8},
          {"example",
           {{"name", "w"},
            {"rule", "fused"},
            {"dtype", "BF16"},
            {"shape", {begin, 8}},
            {"axes", axes},
            {"shards", shards}}}};
}

std::string page_of(const ordered_json& rule, i64 ranks) {
  Page page("grid");
  write_tensor_grid(page, JsonView(rule), ranks);
  return page.take("{}");
}

TEST_CASE("every section of a tensor has one tint, its name, and its share of the drawing") {
  CHECK(rc::check("tints", [] {
    const auto units = *rc::gen::container<std::vector<i64>>(*rc::gen::inRange<size_t>(2, 5),
                                                             rc::gen::inRange<i64>(1, 9));
    const i64 ranks = *rc::gen::inRange<i64>(2, 6);
    const std::string page = page_of(rule_of(units, ranks), ranks);
    const std::regex frame(
        "class=\"frame\" x=\"[0-9.]+\" y=\"([0-9.]+)\" width=\"[0-9.]+\" height=\"([0-9.]+)\"");
    std::smatch found;
    RC_ASSERT(std::regex_search(page, found, frame));
    const double top = std::stod(found[1]), height = std::stod(found[2]);
    const i64 all = std::accumulate(units.begin(), units.end(), i64{0});
    std::vector<double> heights(units.size());
    const std::regex cell(
        "class=\"part f[0-7] t([0-2])\" x=\"[0-9.]+\" y=\"([0-9.]+)\" width=\"[0-9.]+\" "
        "height=\"([0-9.]+)\"");
    for (std::sregex_iterator it(page.begin(), page.end(), cell), end; it != end; ++it) {
      const double middle = std::stod((*it)[2]) + std::stod((*it)[3]) / 2;
      double border = top;
      size_t section = 0;
      while (section + 1 < units.size()) {
        border += height * static_cast<double>(units[section]) / static_cast<double>(all);
        if (middle < border) break;
        ++section;
      }
      RC_ASSERT(std::stoul((*it)[1]) == section % 3);
      heights[section] += std::stod((*it)[3]);
    }
    for (size_t s = 0; s < units.size(); ++s) {
      const double wanted = height * static_cast<double>(units[s]) / static_cast<double>(all);
      RC_ASSERT(std::abs(heights[s] - wanted) < 0.1);
      RC_ASSERT(page.find(" " + kNames[s] + " [") != page.npos);  // in the table
    }
  }));
}

TEST_CASE("a slice has the names of the sections that it has a part of") {
  const ordered_json rule = rule_of({4, 1, 1}, 2);
  const auto sections = read_sections(JsonView(rule)["example"]);
  CHECK(names_of(sections[0], {0, 8}) == "q");
  CHECK(names_of(sections[0], {7, 9}) == "q|k");
  CHECK(names_of(sections[0], {0, 12}) == "q|k|v");
  CHECK(names_of(sections[1], {0, 8}).empty());
}

/// The ranks of a list in the form of rank_list.
std::vector<i64> ranks_of(const std::string& text) {
  std::vector<i64> ranks;
  const std::regex part("(\\.\\. )?(\\d+)(-(\\d+))?");
  for (std::sregex_iterator it(text.begin(), text.end(), part), end; it != end; ++it) {
    const i64 first = std::stoll((*it)[2]);
    if ((*it)[1].matched) {
      const i64 step = ranks.back() - ranks[ranks.size() - 2];
      while (ranks.back() < first) ranks.push_back(ranks.back() + step);
      continue;
    }
    const i64 last = (*it)[4].matched ? std::stoll((*it)[4]) : first;
    for (i64 rank = first; rank <= last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

TEST_CASE("a list of ranks says which they are, in short") {
  CHECK(rc::check("lists", [] {
    const auto steps = *rc::gen::container<std::vector<i64>>(rc::gen::element<i64>(1, 1, 2, 8));
    std::vector<i64> ranks{0};
    for (const i64 step : steps) ranks.push_back(ranks.back() + step);
    RC_ASSERT(ranks_of(rank_list(ranks)) == ranks);
  }));
  CHECK(rank_list({0, 8, 16, 24, 32}) == "0, 8, .. 32");
  CHECK(rank_list({0, 1, 2, 7}) == "0-2, 7");
  CHECK(rank_list({3, 5}) == "3, 5");
}

}  // namespace
}  // namespace shardtool::cli
