#include "lib/model/graph/graph_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "lib/base/text.h"

namespace shardtool::model {
namespace {

bool is_in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

void add_words_of(std::string_view text, std::set<std::string>& words) {
  while (!text.empty()) {
    const auto begin = std::ranges::find_if(text, is_in_word);
    const auto end = std::find_if_not(begin, text.end(), is_in_word);
    if (begin != end) words.emplace(begin, end);
    text = {end, text.end()};
  }
}

/// Checks that every value is made before it is read, and returns the values known after the ops.
std::set<std::string> check_ops(const std::vector<Op>& ops, std::set<std::string> known) {
  for (const Op& op : ops) {
    for (const std::string& name : op.in) {
      if (known.contains(name)) continue;
      throw Error(ErrorCode::kMappingSchema,
                  fmt::format("the value '{}' is read before an op makes it", name))
          .at(op.place);
    }
    known.insert(op.out.begin(), op.out.end());
  }
  return known;
}

/// Does the same for a list of stretches. A value that some variant makes is known after it.
void check_stretches(const std::vector<Alternatives>& stretches, std::set<std::string> known) {
  for (const Alternatives& ways : stretches) {
    std::set<std::string> after = known;
    for (const Way& way : ways) after.merge(check_ops(way.ops, known));
    known = std::move(after);
  }
}

}  // namespace

void check_values(const Graph& graph) {
  std::set<std::string> entering(graph.passed.begin(), graph.passed.end());
  entering.insert("x");
  for (const Stack& stack : graph.stacks) {
    const bool is_first = &stack == &graph.stacks.front();
    check_stretches(stack.start, is_first ? std::set<std::string>() : entering);
    for (const Block& block : stack.blocks) check_stretches(block.stretches, entering);
    if (stack.end) check_stretches(stack.end->stretches, entering);
  }
  check_stretches(graph.end, entering);
}

void add_words(const mapping::JsonValue& value, std::set<std::string>& words) {
  if (value.is_text()) {
    add_words_of(value.text(), words);
  } else if (value.is_array()) {
    for (const mapping::JsonValue& one : value.elements()) add_words(one, words);
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.members()) add_words(member, words);
  }
}

void refuse_unused(std::string_view kind, const std::map<std::string, mapping::JsonValue>& entries,
                   const std::set<std::string>& used, const std::string& file) {
  std::vector<std::string> known;
  for (const auto& [name, value] : entries) {
    if (used.contains(name)) known.push_back(name);
  }
  for (const auto& [name, value] : entries) {
    if (used.contains(name) || value.place().file != file) continue;
    Error error = value.error(
        ErrorCode::kMappingSchema,
        fmt::format("nothing in the graph uses the {} '{}'", kind, quote_for_message(name)));
    const std::string hint = did_you_mean(name, known);
    if (!known.empty()) error.note("used", fmt::format("{}", fmt::join(known, ", ")));
    throw std::move(
        error.help(hint.empty() ? "delete it, or name it where it shall be used" : hint));
  }
}

}  // namespace shardtool::model
