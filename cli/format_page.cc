#include "cli/format_page.h"

#include <algorithm>
#include <cctype>

namespace shardtool::cli {
namespace {

constexpr std::string_view kIndent = "    ";

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// Removes the marks of bold and underlined words; a backslash protects the character behind it.
std::string without_marks(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      plain += text[++i];
      continue;
    }
    const bool is_inside =
        i > 0 && i + 1 < text.size() && is_of_word(text[i - 1]) && is_of_word(text[i + 1]);
    if (c == '*' || (c == '_' && !is_inside)) continue;
    plain += c;
  }
  return plain;
}

/// Returns a line of text outside of literal blocks.
std::string plain_line(std::string_view line) {
  if (line.starts_with('#')) return without_marks(line.substr(line.find_first_not_of("# ")));
  std::string begin;
  for (; line.starts_with('\t'); line.remove_prefix(1)) begin += kIndent;
  const bool is_cell = line.size() > 2 && std::string_view("[|:").find(line[0]) != line.npos &&
                       std::string_view("[]-< ").find(line[1]) != line.npos && line[2] == ' ';
  if (is_cell) {
    if (line[0] == ':') begin += kIndent;
    line.remove_prefix(line.find_first_not_of(' ', 2));
  }
  if (line.ends_with("++")) line.remove_suffix(2);
  return begin + without_marks(line);
}

}  // namespace

std::string_view FormatPage::name() const {
  const size_t begin = file.find('-') + 1;
  return file.substr(begin, file.find('.') - begin);
}

std::string plain_text(const FormatPage& page) {
  std::string text;
  bool is_literal = false;
  for (size_t begin = 0; begin < page.scdoc.size();) {
    const size_t end = std::min(page.scdoc.find('\n', begin), page.scdoc.size());
    const std::string_view line = page.scdoc.substr(begin, end - begin);
    begin = end + 1;
    if (line.substr(std::min(line.find_first_not_of('\t'), line.size())).starts_with("```")) {
      is_literal = !is_literal;
      continue;
    }
    if (!line.empty()) text += is_literal ? std::string(kIndent).append(line) : plain_line(line);
    text += '\n';
  }
  return text;
}

}  // namespace shardtool::cli
