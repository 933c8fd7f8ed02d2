#include <fmt/format.h>

#include <algorithm>

#include "cli/print/text.h"
#include "lib/api/doctor.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

/// Breaks a text between words into lines of at most `width` characters, the first after `begin`
/// and the others after as many spaces.
std::string wrapped(const std::string& begin, std::string_view text, size_t width) {
  std::string out = begin;
  size_t column = display_width(begin);
  const size_t indent = column;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (column > indent && column + 1 + display_width(word) > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) out += ' ';
    column += display_width(word) + (column > indent ? 1 : 0);
    out += word;
  }
  return out + "\n";
}

}  // namespace

void print_text(Session& session, const std::vector<api::DoctorCheck>& checks) {
  constexpr size_t kWidth = 98;
  if (session.quiet()) return;
  size_t name_width = 0;
  for (const auto& check : checks) name_width = std::max(name_width, check.name.size());
  for (const auto& check : checks) {
    const auto name = fmt::format("  {}  {:<{}}  ", check.ok ? "ok" : "!!", check.name, name_width);
    session.out().write(wrapped(name, quote_for_message(check.value, 1000), kWidth));
    if (check.advice.empty()) continue;
    const auto label = std::string(name.size(), ' ') + "help: ";
    session.out().write(wrapped(label, quote_for_message(check.advice, 1000), kWidth));
  }
}

}  // namespace shardtool::cli
