#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "lib/layout/axis_expr.h"
#include "tests/mapping/fixtures.h"
#include "tests/mapping/models.h"

/// Holds the examples of shardtool-mapping(5) against what the strategies do.
namespace shardtool::mapping {
namespace {

std::string page() {
  std::ifstream file(std::string(SHARDTOOL_SOURCE_DIR) + "/cli/man/shardtool-mapping.5.scd");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Formats a region as the manual does: "[4:8 10:12, 0:6]".
std::string text_of(const index::Region& region) {
  std::vector<std::string> axes;
  for (const index::AxisMap& axis : region) {
    std::vector<std::string> pieces;
    for (const index::Piece& piece : axis.pieces())
      pieces.push_back(fmt::format("{}:{}", piece.global, piece.global_end()));
    axes.push_back(fmt::format("{}", fmt::join(pieces, " ")));
  }
  return fmt::format("[{}]", fmt::join(axes, ", "));
}

Shape shape_of(const std::string& text) {
  Shape shape;
  std::istringstream numbers(text);
  for (std::string number; std::getline(numbers, number, ',');) shape.push_back(std::stoll(number));
  return shape;
}

TEST_CASE("the manual's example of a pipeline has an end of the model on one stage each") {
  const std::string text = page();
  const size_t begin =
      text.find("{\"version\": 1, \"extends\": \\[\"preset:llama\"\\], \"overrides\"");
  REQUIRE(begin != std::string::npos);
  std::string example = text.substr(begin, text.find("\n\n", begin) - begin);
  std::erase(example, '\\');
  const TinyModel model = tiny_llama();
  const ModelConfig config = config_of(model.config);
  const Resolution resolution =
      resolve(extending("llama", example), model.tensors, &config, over("pp=2,tp=2"));
  CHECK(at(resolution, model.tensors, "model.embed_tokens.weight").layout->ranks() ==
        std::vector<i64>{0, 1});
  CHECK(at(resolution, model.tensors, "lm_head.weight").layout->ranks() == std::vector<i64>{2, 3});
}

TEST_CASE("every example of a strategy in the manual resolves to what it says") {
  const std::regex example(
      R"re(\t(\{"type": "([a-z_]+)".*\}) of \[([0-9, ]+)\] on (\S+): rank (\d+) has (\[.*\]))re");
  const std::string text = page();
  std::set<std::string> shown;
  for (std::sregex_iterator it(text.begin(), text.end(), example), end; it != end; ++it) {
    const std::smatch& match = *it;
    CAPTURE(match[0].str());
    shown.insert(match[2]);
    const Mapping mapping = mapping_of(fmt::format(
        R"({{"version": 1, "rules": [{{"match": "w", "strategy": {}}}]}})", match[1].str()));
    const std::vector<TensorSpec> tensors = {spec("w", shape_of(match[3]))};
    const Resolution resolution = resolve(mapping, tensors, nullptr, over(match[4].str()));
    const auto region = resolution.tensors.at(0).layout->region(std::stoll(match[5]));
    REQUIRE(region);
    CHECK(text_of(*region) == match[6].str());
  }
  for (int k = 0; k < static_cast<int>(layout::StrategyKind::kTensorParallel); ++k) {
    const std::string name(to_string(static_cast<layout::StrategyKind>(k)));
    CAPTURE(name);
    CHECK(shown.contains(name));
    CHECK(text.find("*" + name + "*") != text.npos);
  }
}

TEST_CASE("the manual names every rule by which an expression may split units") {
  const std::string text = page();
  const size_t begin = text.find("*Split*(n, over)");
  REQUIRE(begin != text.npos);
  const std::string paragraph = text.substr(begin, text.find("\n\n", begin) - begin);
  for (const layout::SplitRule& rule :
       {layout::kExact, layout::kBalanced, layout::kMiddle, layout::kCeil, layout::padded(2)}) {
    const std::string word = to_string(rule);
    CAPTURE(word);
    CHECK(paragraph.find(word.substr(0, word.find('('))) != text.npos);
  }
}

}  // namespace
}  // namespace shardtool::mapping
