// A pattern, a new line, and a name that it may match.
#include "lib/mapping/document/glob.h"

#include <string>
#include <vector>

#include "lib/base/json_reader.h"
#include "lib/base/json_text.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {
namespace {

using mapping::GlobToken;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Possible end positions of a match of one token that begins at `at`.
std::vector<size_t> ends(const GlobToken& token, std::string_view name, size_t at) {
  const std::string_view rest = name.substr(at);
  std::vector<size_t> found;
  const auto literal = [&](const std::string& text) {
    if (rest.starts_with(text)) found.push_back(at + text.size());
  };
  size_t end = at;
  switch (token.kind) {
    case GlobToken::Kind::kLiteral:
      literal(token.text);
      break;
    case GlobToken::Kind::kChoice:
      for (const std::string& choice : token.choices) literal(choice);
      break;
    case GlobToken::Kind::kPart:
      for (; end < name.size() && name[end] != '.'; ++end) found.push_back(end);
      found.push_back(end);
      break;
    case GlobToken::Kind::kAny:
      for (; end <= name.size(); ++end) found.push_back(end);
      break;
    case GlobToken::Kind::kNumber:
      while (end < name.size() && is_digit(name[end]) && end - at < 18) found.push_back(++end);
      break;
  }
  return found;
}

/// True if the tokens match the whole name; visits all possible end positions.
bool matches(std::span<const GlobToken> tokens, std::string_view name) {
  std::vector<bool> reached(name.size() + 1);
  reached[0] = true;
  for (const GlobToken& token : tokens) {
    std::vector<bool> next(name.size() + 1);
    for (size_t at = 0; at <= name.size(); ++at) {
      if (!reached[at]) continue;
      for (const size_t end : ends(token, name, at)) next[end] = true;
    }
    reached = next;
  }
  return reached[name.size()];
}

bool is_text(std::string_view text) {
  return accepted([&] {
           JsonReader in(text, {"f", ErrorCode::kUsage}, 1);
           in.string();
           in.finish();
           return true;
         })
      .has_value();
}

}  // namespace

void glob(std::string_view input) {
  const std::string_view pattern = take_until(input, '\n');
  const std::string_view name = input.substr(0, 200);
  // Patterns and names come from JSON and are UTF-8.
  if (!is_text(json_quote(pattern)) || !is_text(json_quote(name))) return;
  const auto read = accepted([&] { return mapping::Glob(pattern); });
  if (!read) return;
  const auto filter = accepted([&] { return mapping::glob_filter(pattern); });
  if (!filter) return;
  holds((*filter)(name) == matches(read->tokens(), name), "regex and tokens disagree");
  std::string written;
  for (const GlobToken& token : read->tokens()) {
    if (token.kind == GlobToken::Kind::kLiteral) written += token.text;
  }
  holds(read->wildcards().empty() == (written == pattern), "a glob without wildcards is its text");
}

}  // namespace shardtool::fuzz
