#include "lib/mapping/document/glob.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/document/identifier.h"

namespace shardtool::mapping {
namespace {

[[noreturn]] void refuse_glob(std::string_view glob, const std::string& why) {
  throw Error(ErrorCode::kMappingSchema,
              fmt::format("the pattern '{}' {}", quote_for_message(glob), why))
      .help(
          "a pattern knows * (within one dotted part), ** (anything), {a,b} (one of the texts) and "
          "<name> (an integer); for more use \"regex\"");
}

GlobToken parse_choice(std::string_view glob, std::string_view inside) {
  if (inside.find_first_of("{*<>") != inside.npos) {
    refuse_glob(glob, "has a wildcard or a brace inside braces");
  }
  GlobToken token{GlobToken::Kind::kChoice, {}, {}};
  for (const std::string_view choice : split_at(inside, ",")) token.choices.emplace_back(choice);
  return token;
}

GlobToken parse_number(std::string_view glob, std::string_view name) {
  if (!is_identifier(name))
    refuse_glob(glob, fmt::format("captures a number without a proper name, <{}>", name));
  return {GlobToken::Kind::kNumber, std::string(name), {}};
}

/// Returns the text between the opening bracket at the front and `close`, and removes all three
/// from `rest`.
std::string_view take_bracketed(std::string_view glob, std::string_view& rest, char close) {
  const size_t end = rest.find(close);
  if (end == rest.npos)
    refuse_glob(glob, fmt::format("has a '{}' without '{}'", rest.front(), close));
  const std::string_view inside = rest.substr(1, end - 1);
  rest.remove_prefix(end + 1);
  return inside;
}

GlobToken take_token(std::string_view glob, std::string_view& rest) {
  switch (rest.front()) {
    case '*': {
      const bool any = rest.starts_with("**");
      rest.remove_prefix(any ? 2 : 1);
      return {any ? GlobToken::Kind::kAny : GlobToken::Kind::kPart, {}, {}};
    }
    case '{':
      return parse_choice(glob, take_bracketed(glob, rest, '}'));
    case '<':
      return parse_number(glob, take_bracketed(glob, rest, '>'));
    case '}':
    case '>':
      refuse_glob(glob, fmt::format("has a '{}' that nothing opens", rest.front()));
    default:
      break;
  }
  const std::string_view literal = rest.substr(0, rest.find_first_of("*{<}>"));
  rest.remove_prefix(literal.size());
  return {GlobToken::Kind::kLiteral, std::string(literal), {}};
}

/// Returns the token in RE2 syntax, without a group around it.
std::string language(const GlobToken& token) {
  switch (token.kind) {
    case GlobToken::Kind::kLiteral:
      return RE2::QuoteMeta(token.text);
    case GlobToken::Kind::kPart:
      return "[^.]*";
    case GlobToken::Kind::kAny:
      return "(?s:.*)";
    case GlobToken::Kind::kNumber:
      return "[0-9]{1,18}";
    case GlobToken::Kind::kChoice:
      break;
  }
  std::string alternatives;
  for (const std::string& choice : token.choices) {
    alternatives += (alternatives.empty() ? "(?:" : "|") + RE2::QuoteMeta(choice);
  }
  return alternatives + ")";
}

/// Returns true if some run of digits in the literal has no letter next to it, so that it may match
/// inside a dotted part that consists of digits.
bool may_be_in_number(std::string_view literal) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t begin = 0; begin < literal.size(); ++begin) {
    if (!is_digit(literal[begin])) continue;
    size_t end = begin;
    while (end < literal.size() && is_digit(literal[end])) ++end;
    const bool after_letter = begin > 0 && literal[begin - 1] != '.';
    const bool before_letter = end < literal.size() && literal[end] != '.';
    if (!after_letter && !before_letter) return true;
    begin = end;
  }
  return false;
}

}  // namespace

Glob::Glob(std::string_view text) : text_(text) {
  std::vector<std::string> numbers;
  for (std::string_view rest = text_; !rest.empty();) {
    tokens_.push_back(take_token(text_, rest));
    if (tokens_.back().kind != GlobToken::Kind::kNumber) continue;
    const std::string& name = tokens_.back().text;
    if (std::find(numbers.begin(), numbers.end(), name) != numbers.end()) {
      refuse_glob(text_, fmt::format("captures <{}> twice", name));
    }
    numbers.push_back(name);
  }
}

std::vector<GlobToken> Glob::wildcards() const {
  std::vector<GlobToken> found;
  std::copy_if(tokens_.begin(), tokens_.end(), std::back_inserter(found),
               [](const GlobToken& token) { return token.kind != GlobToken::Kind::kLiteral; });
  return found;
}

std::string Glob::regex() const {
  std::string text;
  for (const GlobToken& token : tokens_) {
    const bool number = token.kind == GlobToken::Kind::kNumber;
    text += number ? fmt::format("(?P<{}>{})", token.text, language(token)) : language(token);
  }
  return text;
}

std::string Glob::regex_of_groups() const {
  std::string text;
  for (const GlobToken& token : tokens_) {
    const bool literal = token.kind == GlobToken::Kind::kLiteral;
    text += literal ? language(token) : "(" + language(token) + ")";
  }
  return text;
}

bool Glob::takes_any_number() const {
  bool follows_number = false;  // two tokens without a literal between may share a part's digits
  for (const GlobToken& token : tokens_) {
    if (token.kind == GlobToken::Kind::kNumber && std::exchange(follows_number, true)) return false;
    if (token.kind != GlobToken::Kind::kLiteral) continue;
    if (may_be_in_number(token.text)) return false;
    follows_number = false;
  }
  return std::none_of(tokens_.begin(), tokens_.end(), [](const GlobToken& token) {
    return std::any_of(token.choices.begin(), token.choices.end(), may_be_in_number);
  });
}

std::string Glob::fill(std::span<const std::string> wildcard_texts) const {
  std::string name;
  size_t next = 0;
  for (const GlobToken& token : tokens_) {
    name += token.kind == GlobToken::Kind::kLiteral ? token.text : wildcard_texts[next++];
  }
  return name;
}

std::function<bool(std::string_view)> glob_filter(std::string_view glob) {
  // In a shared_ptr, because std::function must be copyable and RE2 is not.
  const auto pattern = std::make_shared<const RE2>(Glob(glob).regex(), RE2::Quiet);
  if (!pattern->ok()) throw Error(ErrorCode::kLimit, "a pattern is too large: " + pattern->error());
  return [pattern](std::string_view name) {
    return RE2::FullMatch(re2::StringPiece(name.data(), name.size()), *pattern);
  };
}

}  // namespace shardtool::mapping
