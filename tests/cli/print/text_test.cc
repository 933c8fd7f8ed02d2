#include "cli/print/text.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "lib/base/shell.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

/// Parses the word in $'...' like bash.
std::string as_bash_reads(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char kind = text[++i];
    if (kind != 'x' && kind != 'u') {
      out += kind;
      continue;
    }
    const size_t digits = kind == 'x' ? 2 : 4;
    const auto number = std::stoul(std::string(text.substr(i + 1, digits)), nullptr, 16);
    if (kind == 'x') {
      out += static_cast<char>(number);
    } else {
      append_utf8(out, static_cast<char32_t>(number));
    }
    i += digits;
  }
  return out;
}

/// Parses a word of `shell_quoted` like a POSIX shell, or like bash if it begins with $.
std::string as_shell_reads(std::string_view text) {
  if (text.starts_with("$'")) return as_bash_reads(text.substr(2, text.size() - 3));
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') {
      quoted = !quoted;
    } else if (!quoted && text[i] == '\\') {
      out += text[++i];
    } else {
      out += text[i];
    }
  }
  return out;
}

TEST_CASE("a quoted word is read by a shell as the word itself, also as a message shows it") {
  CHECK(rc::check("any text", [] {
    const auto word = *rc::gen::string<std::string>();
    const std::string quoted = shell_quoted(word);
    RC_ASSERT(as_shell_reads(quoted) == word);
    RC_ASSERT(quote_for_message(quoted, quoted.size()) == quoted);
  }));
  CHECK(shell_quoted("out/tp4") == "out/tp4");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("a b") == "'a b'");
  CHECK(shell_quoted("it's") == "'it'\\''s'");
  CHECK(shell_quoted("it's\xff\n\\") == "$'it\\'s\\xff\\x0a\\\\'");
  CHECK(shell_quoted("\u202e") == "$'\\u202e'");
  CHECK(path_argument("-out it") == "'./-out it'");
}

TEST_CASE("labels align what they label") {
  const Style plain(false);
  CHECK(labelled(plain, "plan", "x") == "plan     x\n");
  CHECK(labelled(plain, "", "x") == "         x\n");
  CHECK(labelled(plain, "a long label", "x") == "a long label x\n");
}

}  // namespace
}  // namespace shardtool::cli
