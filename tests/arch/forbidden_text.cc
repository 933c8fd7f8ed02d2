#include "tests/arch/forbidden_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace shardtool::arch {
namespace {

/// Split in two, so that this file has no finding itself.
struct Pattern {
  std::string_view first;
  std::string_view second;
};
constexpr auto kMachineFolders = std::to_array<Pattern>({
    {"/home", "/"},
    {"/work", "/"},
    {"/root", "/"},
    {"/Users", "/"},
});
constexpr auto kUnfinished = std::to_array<Pattern>({{"TO", "DO"}, {"FIX", "ME"}});
constexpr auto kVagueNames =
    std::to_array<std::string_view>({"util", "common", "helper", "misc", "manager", "stuff"});

/// Also true after the wildcard of a golden text and after a shell's ${variable}.
bool continues_a_word(std::string_view line, size_t position) {
  if (position == 0) return false;
  const char before = line[position - 1];
  return std::isalnum(static_cast<unsigned char>(before)) != 0 ||
         std::string_view("._]}").find(before) != std::string_view::npos;
}

bool is_continued(std::string_view line, size_t end) {
  const auto alphanumeric = [&](size_t at) {
    return at < line.size() && std::isalnum(static_cast<unsigned char>(line[at])) != 0;
  };
  return alphanumeric(end - 1) && alphanumeric(end);
}

bool contains_word(std::string_view line, const std::string& word) {
  for (size_t found = line.find(word); found != std::string_view::npos;
       found = line.find(word, found + 1)) {
    const bool whole = !continues_a_word(line, found) && !is_continued(line, found + word.size());
    if (whole) return true;
  }
  return false;
}

template <typename Patterns>
void collect(const Source& source, const Patterns& patterns, Findings& findings) {
  size_t number = 0;
  for (const std::string_view line : lines_of(source.text)) {
    ++number;
    for (const Pattern& pattern : patterns) {
      const std::string word = std::string(pattern.first) + std::string(pattern.second);
      if (contains_word(line, word)) findings.push_back(at_line(source, number, line));
    }
  }
}

/// True if the argument that begins at `at` has && or || outside of inner parentheses.
bool joins_conditions(std::string_view text, size_t at) {
  int depth = 1;
  for (; at < text.size() && depth > 0; ++at) {
    const std::string_view two = text.substr(at, 2);
    if (depth == 1 && (two == "&&" || two == "||")) return true;
    if (std::string_view("([{").find(text[at]) != std::string_view::npos) ++depth;
    if (std::string_view(")]}").find(text[at]) != std::string_view::npos) --depth;
  }
  return false;
}

}  // namespace

Findings eager_properties(const Source& source) {
  constexpr auto kMacros =
      std::to_array<Pattern>({{"RC_", "PRE("}, {"RC_", "ASSERT("}, {"RC_", "ASSERT_FALSE("}});
  const std::string_view text = source.text;
  Findings findings;
  for (const Pattern& macro : kMacros) {
    const std::string name = std::string(macro.first) + std::string(macro.second);
    for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
      if (!joins_conditions(text, at + name.size())) continue;
      const auto line = 1 + std::ranges::count(text.substr(0, at), '\n');
      findings.push_back(at_line(source, static_cast<size_t>(line), name));
    }
  }
  return findings;
}

Findings forbidden_text(const Source& source) {
  Findings findings;
  collect(source, kMachineFolders, findings);
  collect(source, kUnfinished, findings);
  return findings;
}

Findings vague_name(const Source& source) {
  const std::string_view name = std::string_view(source.path).substr(source.path.rfind('/') + 1);
  for (const std::string_view vague : kVagueNames) {
    if (name.find(vague) != std::string_view::npos) {
      return {fmt::format("{}: '{}' does not say what is in it", source.path, vague)};
    }
  }
  return {};
}

}  // namespace shardtool::arch
