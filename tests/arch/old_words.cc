#include "tests/arch/old_words.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace shardtool::arch {
namespace {

/// Old words, where they mean what the table says, and the word to use.
struct OldWord {
  const char* pattern;
  std::string_view use;
};
constexpr auto kOldWords = std::to_array<OldWord>({
    {R"((^|[^-])\bdevices? (\{|[0-9]))", "rank"},
    {R"(\bpieces?\b)", "shard"},
    {R"(\bparts? (of|per) (a |the |every |each )?(rank|device|tensor|weight)s?\b)", "shard"},
    {R"((device|rank)s?'s? parts?\b)", "shard"},
    {R"(\b(every|equal|unequal|uneven|old|new|local|their|whole) parts?\b)", "shard"},
    {R"(\b(put|from|to|turn|in|into) (the )?parts\b)", "shard"},
    {R"(\bwhole model\b|\bthe whole's\b|\bas a whole\b)", "unsharded"},
    {R"(\bproduct library\b|\bproducts of \w+ (weights|floats)\b)", "GEMM"},
    {R"(\bside files\b)", "config and tokenizer files"},
    {R"(\btowers\b|\bvision tower\b)", "vision encoder"},
    {R"(\bclon(e|es|ed|ing)\b|\bshare[sd]? extents\b)", "reflink"},
});

/// Text for people, with the line that it begins in.
struct Passage {
  size_t line = 0;
  std::string text;
};

size_t line_at(std::string_view text, size_t at) {
  return 1 + static_cast<size_t>(std::ranges::count(text.substr(0, at), '\n'));
}

/// Reads the raw literal whose opening quote is at `at`, and moves `at` past its closing quote.
std::string read_raw(std::string_view text, size_t& at) {
  const size_t open = std::min(text.find('(', at), text.size() - 1);
  const std::string close = ")" + std::string(text.substr(at + 1, open - at - 1)) + "\"";
  const size_t end = std::min(text.find(close, open), text.size() - close.size());
  at = end + close.size();
  return std::string(text.substr(open + 1, end - open - 1));
}

/// Reads the literal whose opening quote is at `at`, and moves `at` past its closing quote.
std::string read_literal(std::string_view text, size_t& at) {
  if (at > 0 && text[at - 1] == 'R') return read_raw(text, at);
  std::string content;
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
    if (at < text.size()) content += text[at];
  }
  at = std::min(at + 1, text.size());
  return content;
}

/// Skips a comment or a character literal at `at`. Returns false if there is none.
bool skip_other(std::string_view text, size_t& at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//") || rest.starts_with("#include")) {
    at = std::min(text.find('\n', at), text.size());
    return true;
  }
  if (!rest.starts_with("'") ||
      (at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])))) {
    return false;
  }
  at = std::min(text.find('\'', at + (rest.starts_with("'\\") ? 3 : 2)), text.size() - 1) + 1;
  return true;
}

/// String literals of a source in C++, joined with those that follow directly.
std::vector<Passage> literals(std::string_view text) {
  std::vector<Passage> passages;
  size_t end = text.npos;  // of the literal before
  for (size_t at = 0; at < text.size();) {
    if (skip_other(text, at)) continue;
    if (text[at] != '"') {
      ++at;
      continue;
    }
    const std::string_view between =
        end < at ? text.substr(end, at - end) : std::string_view("none before");
    const bool follows = between.find_first_not_of(" \n") == between.npos;
    if (!follows) passages.push_back({line_at(text, at), {}});
    passages.back().text += read_literal(text, at);
    end = at;
  }
  return passages;
}

std::vector<Passage> lines(std::string_view text) {
  std::vector<Passage> passages;
  for (const std::string_view line : lines_of(text)) {
    passages.push_back({passages.size() + 1, std::string(line)});
  }
  return passages;
}

bool is_cpp(std::string_view path) {
  return path.ends_with(".cc") || path.ends_with(".h") || path.ends_with(".cu");
}

}  // namespace

Findings old_words(const Source& source) {
  Findings findings;
  for (const Passage& passage : is_cpp(source.path) ? literals(source.text) : lines(source.text)) {
    for (const OldWord& word : kOldWords) {
      if (!RE2::PartialMatch(passage.text, word.pattern)) continue;
      findings.push_back(
          at_line(source, passage.line, fmt::format("say {}: {}", word.use, passage.text)));
    }
  }
  return findings;
}

}  // namespace shardtool::arch
