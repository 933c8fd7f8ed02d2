#include "cli/print/text.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdio>
#include <cstdlib>

#include "lib/base/shell.h"

namespace shardtool::cli {
namespace {

/// Parses a word of `shell_quoted` like a POSIX shell.
std::string as_shell_reads(std::string_view text) {
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

TEST_CASE("a quoted word is read by a shell as the word itself") {
  CHECK(rc::check("any text", [] {
    const auto word = *rc::gen::string<std::string>();
    RC_ASSERT(as_shell_reads(shell_quoted(word)) == word);
  }));
  CHECK(shell_quoted("out/tp4") == "out/tp4");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("a b") == "'a b'");
  CHECK(shell_quoted("it's") == "'it'\\''s'");
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
